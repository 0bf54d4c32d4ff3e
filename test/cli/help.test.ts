// What the command line says of itself: overview, help, docs/cli.md and completion, held against each other.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { commands, resolveName } from '../../src/cli/commands.ts';
import { common } from '../../src/cli/frame/command.ts';
import { abouts, commandHelp, overview } from '../../src/cli/frame/help.ts';
import { optionsOf, parseCommand } from '../../src/cli/frame/parse.ts';
import { processIo } from '../../src/cli/io.ts';
import { cli } from '../helpers/cli.ts';

test('the overview, the commands and docs/cli.md name the same, and each has its verbs and an example', async () => {
  const docs = readFileSync('docs/cli.md', 'utf8');
  const documented = [...docs.matchAll(/^### `sluice ([a-z]+)`/gm)].map(([, name]) => name);
  assert.deepEqual(Object.keys(commands), [...abouts().keys()]);
  assert.deepEqual(documented, Object.keys(commands));
  for (const [name, load] of Object.entries(commands)) {
    const command = await load();
    const section = docs.slice(docs.indexOf(`### \`sluice ${name}\``)).split(/\n### |\n## /)[0]!;
    for (const verb of Object.keys(command.verbs))
      assert.ok(verb === '' || section.includes(`\`${verb}`), `${name} ${verb}`);
    for (const [, verb] of section.matchAll(/^\| `([a-z]+)/gm))
      assert.ok(verb! in command.verbs, `${name} has no ${verb}`);
    const options = Object.keys(optionsOf(command)).filter((option) => !(option in common));
    const told = new Set([...section.matchAll(/^- .*`--([a-z-]+)/gm)].map(([, option]) => option));
    assert.deepEqual([...told].sort(), options.sort(), `options of ${name}`);
    for (const verb of ['', ...Object.keys(command.verbs)])
      assert.match(commandHelp(name, command, verb), /^usage: sluice [\s\S]+for example:\n {2}\S/, `${name} ${verb}`);
  }
});

test('the commands that pages of the console offer are commands of the command line', async () => {
  const found = globSync('console/src/**/*.tsx').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/npx sluice ([^`"]+)/g)].map(([, words]) => words!),
  );
  assert.ok(found.length >= 10);
  for (const text of found) {
    // A value of the page stands for one word; what a shell reads from a file is no word.
    const [name, ...words] = text
      .replaceAll(/\$\{[^}]+\}/g, 'value')
      .replace(/ < .*/, '')
      .split(' ');
    const parsed = parseCommand(await commands[resolveName(name!)!]!(), words, processIo);
    assert.ok('verb' in parsed, text);
  }
});

test('the overview fits 80 columns, is what --help prints, and names every exit code', async () => {
  for (const line of overview().split('\n')) assert.ok(line.length <= 80, line);
  for (const args of [[], ['--help'], ['-h'], ['help']]) assert.equal((await cli(args)).stdout, overview());
  assert.match((await cli(['help', 'deploy'])).stdout, /^usage: sluice deploy IMAGE/);
  assert.match((await cli(['--version'])).stdout, /^sluice \d+\.\d+\.\d+\n$/);
  const docs = readFileSync('docs/cli.md', 'utf8');
  for (const code of [0, 1, 2, 3, 4, 5, 78, 130]) assert.match(docs, new RegExp(`^\\| ${code} \\|`, 'm'));
});

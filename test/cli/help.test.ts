// What the command line says of itself: overview, help, docs/cli.md and completion, held against each other.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { commands } from '../../src/cli/commands.ts';
import { common } from '../../src/cli/frame/command.ts';
import { abouts, commandHelp, overview } from '../../src/cli/frame/help.ts';
import { optionsOf } from '../../src/cli/frame/parse.ts';
import { cli, program } from '../helpers/cli.ts';

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

test('the overview fits 80 columns, is what --help prints, and names every exit code', async () => {
  for (const line of overview().split('\n')) assert.ok(line.length <= 80, line);
  for (const args of [[], ['--help'], ['-h'], ['help']]) assert.equal((await cli(args)).stdout, overview());
  assert.match((await cli(['help', 'deploy'])).stdout, /^usage: sluice deploy IMAGE/);
  assert.match((await cli(['--version'])).stdout, /^sluice \d+\.\d+\.\d+\n$/);
  const docs = readFileSync('docs/cli.md', 'utf8');
  for (const code of [0, 1, 2, 3, 4, 5, 78, 130]) assert.match(docs, new RegExp(`^\\| ${code} \\|`, 'm'));
});

test('completion: the script for bash completes commands, verbs, options and their values', () => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-cli-test-'));
  writeFileSync(join(dir, 'sluice'), `#!/bin/sh\nexec ${process.execPath} ${program} "$@"\n`);
  chmodSync(join(dir, 'sluice'), 0o755);
  const env = { PATH: `${dir}:${process.env.PATH}`, HOME: dir };
  const run = (script: string) => execFileSync('bash', ['-c', script], { env, encoding: 'utf8' });
  run('bash -n <(sluice completion bash)');
  const complete = (...words: string[]) =>
    run(
      `source <(sluice completion bash); COMP_WORDS=(sluice ${words.map((word) => `'${word}'`).join(' ')}); ` +
        `COMP_CWORD=${words.length}; _sluice; echo "\${COMPREPLY[*]}"`,
    ).trim();
  assert.equal(complete('dep'), 'deploy deployments');
  assert.equal(complete('env', 'un').split(/\s+/).join(' '), 'unset unlock');
  assert.equal(complete('deploy', '--st'), '--strategy');
  assert.equal(complete('deploy', '--strategy', 'b'), 'blue_green');
  assert.equal(complete('catalogue', 'build', '--seg'), '--segmented');
  for (const shell of ['zsh', 'fish']) assert.match(run(`sluice completion ${shell}`), /sluice completion words --/);
  rmSync(dir, { recursive: true });
});

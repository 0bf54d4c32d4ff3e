// Completion in the shells themselves: each loads the script that the command line prints, and says what Tab would offer.
// Projects, environments and revisions come from a running service.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { onPath } from '../../scripts/packages.ts';
import { cli, envOf, program } from '../helpers/cli.ts';
import { sharedApp } from '../helpers/shared-app.ts';
import { Shop } from '../helpers/shop.ts';

const t = sharedApp();
let home: string;
let env: Record<string, string> | undefined;

/** The service, what is in it, and `sluice` on the PATH: made by the first test that needs them. */
async function prepare(): Promise<void> {
  if (env) return;
  home = mkdtempSync(join(tmpdir(), 'sluice-completion-'));
  writeFileSync(join(home, 'sluice'), `#!/bin/sh\nexec ${process.execPath} ${program} "$@"\n`);
  chmodSync(join(home, 'sluice'), 0o755);
  const shop = await Shop.open(t.url, {});
  await shop.released('shop:1');
  await shop.released('shop:2');
  const { slug } = JSON.parse((await cli(['projects', 'show', shop.project, '--json'], envOf(t.url))).stdout);
  env = { ...envOf(t.url), PATH: `${home}:${process.env.PATH}`, HOME: home, SLUG: slug, TERM: 'dumb' };
}

after(() => home && rmSync(home, { recursive: true, force: true }));

async function run(shell: string, args: string[]): Promise<string> {
  const child = spawn(shell, args, { env, cwd: home, stdio: ['ignore', 'pipe', 'pipe'] });
  let [out, error] = ['', ''];
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  child.stderr.on('data', (chunk) => {
    error += chunk;
  });
  const [code] = await once(child, 'close');
  assert.equal(code, 0, `${shell}: ${error}`);
  return out;
}

/** What Tab offers after a line that is not finished. */
const offers: Record<string, (words: string[]) => Promise<string[]>> = {
  async bash(words) {
    const quoted = words.map((word) => `'${word}'`).join(' ');
    const script =
      `source <(sluice completion bash); COMP_WORDS=(sluice ${quoted}); COMP_CWORD=${words.length}; ` +
      `_sluice; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return lines(await run('bash', ['--norc', '-c', script]));
  },
  async zsh(words) {
    const quoted = words.map((word) => `'${word}'`).join(' ');
    // Outside of the line editor the functions that offer words have no menu to put them in: these print them.
    const script =
      `compdef() { :; }; _files() { :; }; _describe() { print -rl -- "\${(@)\${(P)2}%%:*}"; }; ` +
      `source <(sluice completion zsh); words=(sluice ${quoted}); CURRENT=$#words; _sluice`;
    const last = words.at(-1)!;
    return lines(await run('zsh', ['-f', '-c', script])).filter((word) => word.startsWith(last));
  },
  async fish(words) {
    const line = `sluice ${words.join(' ')}`;
    const script = `sluice completion fish | source; complete --do-complete '${line}'`;
    return lines(await run('fish', ['--no-config', '-c', script])).map((each) => each.split('\t')[0]!);
  },
};

const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');

for (const [shell, offered] of Object.entries(offers)) {
  test(`${shell} completes commands, verbs, options, choices, projects, environments and revisions`, {
    skip: !onPath(shell) && `${shell} is not installed`,
  }, async () => {
    await prepare();
    const slug = env!.SLUG!;
    for (const [words, expected] of [
      [['dep'], ['deploy', 'deployments']],
      [
        ['env', 'un'],
        ['unset', 'unlock'],
      ],
      [['deploy', '--st'], ['--strategy']],
      [['deploy', '--strategy', 'b'], ['blue_green']],
      [['catalogue', 'build', '--seg'], ['--segmented']],
      [['projects', 'show', slug.slice(0, 4)], [slug]],
      [['logs', '--project', slug.slice(0, 4)], [slug]],
      [['logs', '-p', slug, '--env', 'prod'], ['production']],
      [['env', 'show', '-p', slug, 'p'], ['production']],
      [
        ['rollback', '-p', slug, 'r'],
        ['r1', 'r2'],
      ],
      [
        ['diff', '-p', slug, 'r1', 'r'],
        ['r1', 'r2'],
      ],
    ] as [string[], string[]][]) {
      // It gives up after a moment, so as not to hold the shell: on a busy machine one presses Tab again.
      let found: string[] = [];
      for (let tries = 0; tries < 10 && found.length === 0; tries++) found = (await offered(words)).sort();
      assert.deepEqual(found, [...expected].sort(), `${shell}: ${words.join(' ')}`);
    }
  });
}

test('the script for bash has no fault of syntax, and without a service there is nothing to offer, quickly', async () => {
  await prepare();
  await run('bash', ['-n', '-c', (await cli(['completion', 'bash'])).stdout]);
  const away = { SLUICE_API_URL: 'http://127.0.0.1:9', SLUICE_TOKEN: 'x' };
  const { code, stdout, stderr } = await cli(['completion', 'words', '--', 'projects', 'show', ''], away);
  assert.deepEqual([code, stdout, stderr], [0, '', '']);
});

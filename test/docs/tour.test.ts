// docs/tour.md as a newcomer does it: every command as it stands there, on the stand-in and on Docker, in a folder of its own
// and, so that the default ports are free whatever else runs, with a loopback of its own.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { haproxyFilesOf } from '../../src/traffic/haproxy/haproxy-files.ts';
import { stopMaster } from '../../src/traffic/haproxy/haproxy-process.ts';
import { onPostgres } from '../helpers/app.ts';
import { dockerMissing } from '../helpers/docker.ts';

interface Step {
  command: string;
  /** What it has to print, after `# →`. */
  prints: string | null;
}

interface Tour {
  standin: string[];
  docker: string[];
  /** The same for both. */
  steps: Step[];
}

function readTour(): Tour {
  const blocks = [...readFileSync('docs/tour.md', 'utf8').matchAll(/^```sh\n(.*?)^```/gms)].map(([, text]) =>
    text!.trim().split('\n'),
  );
  const [standin, docker, ...rest] = blocks as [string[], string[], ...string[][]];
  const steps = rest.flat().map((line) => {
    const [command, prints] = line.split(/\s+# → /) as [string, string?];
    return { command, prints: prints ?? null };
  });
  return { standin, docker, steps };
}

/** All of the checkout but its data. */
function linkCheckout(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-tour-'));
  for (const name of readdirSync('.')) {
    if (name !== 'data' && name !== '.git') symlinkSync(resolve(name), join(folder, name));
  }
  return folder;
}

const marker = '::::';

/** npx starts npm each time to find the same program, which takes ten times as long as the program: once is enough to show that. */
const afterwards = 'npx() { shift; bin/sluice.js "$@"; }';

function scriptOf(start: string[], steps: Step[]): string {
  const [install, serve] = start.at(-1)!.split(' && ') as [string, string];
  assert.equal(install, 'npm ci');
  const firstNpx = steps.findIndex(({ command }) => command.startsWith('npx sluice '));
  assert.ok(firstNpx >= 0);
  return [
    'set -e',
    'ip link set lo up',
    ...start.slice(0, -1),
    `(${serve}) > service.log 2>&1 &`,
    'service=$!',
    'for try in $(seq 300); do curl -sf http://127.0.0.1:8080/readyz > ready && break; sleep 0.1; done; cat ready',
    'disown $service', // jobs are counted from here on, as in a second terminal
    ...steps.flatMap(({ command }, index) => [
      `echo "${marker}${index}"`,
      command,
      ...(index === firstNpx ? [afterwards] : []),
    ]),
    `echo "${marker}end"`,
  ].join('\n');
}

const canIsolate = process.getuid?.() === 0 && spawnSync('unshare', ['--net', 'true']).status === 0;
const cannotIsolate = canIsolate ? false : 'needs root, for a network of its own';

async function take(start: string[], { steps }: Tour, shell: string[]): Promise<void> {
  const folder = linkCheckout();
  writeFileSync(join(folder, 'tour.sh'), scriptOf(start, steps));
  const path = process.env.PATH!.split(':').filter((entry) => !entry.includes('node_modules'));
  const child = spawn('unshare', ['--net', ...shell, 'tour.sh'], {
    cwd: folder,
    env: { PATH: [...path, '/usr/sbin', '/sbin'].join(':'), HOME: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // so that all it starts is one group, and none of it outlives the test
  });
  // Its npx commands alone take minutes where the processors are shared with other work.
  const late = setTimeout(() => child.kill('SIGKILL'), 480_000);
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk;
  });
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk;
  });
  const closed = once(child, 'close');
  const [code] = await once(child, 'exit');
  clearTimeout(late);
  spawnSync('kill', ['-KILL', '--', `-${child.pid}`]);
  await stopMaster(haproxyFilesOf(join(folder, 'data')), 0); // it outlives the service
  await closed;
  const everything = () => `${said}\n--- the service:\n${readFileSync(join(folder, 'service.log'), 'utf8')}`;
  assert.ok(said.includes(`${marker}end`), everything());
  for (const [index, { command, prints }] of steps.entries()) {
    const output = said.split(`${marker}${index}\n`)[1]?.split(marker)[0] ?? '';
    if (prints !== null) assert.ok(output.includes(prints), `${command} printed:\n${output}`);
  }
  assert.equal(code, 0, everything());
  rmSync(folder, { recursive: true, force: true });
}

if (!onPostgres) {
  describe('the tour', { concurrency: true, skip: cannotIsolate }, () => {
    const tour = readTour();
    test('on the stand-in', () => take(tour.standin, tour, ['bash']));
    test('on Docker', { skip: dockerMissing }, () =>
      take(tour.docker, tour, [process.execPath, resolve('test/helpers/with-docker.ts'), 'bash']),
    );
  });
}

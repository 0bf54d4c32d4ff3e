// Sets of attacks that are tests of their own. `npm test` runs them anyway, so the short form leaves them out.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Attack, Outcome } from '../attack.ts';

async function runTests(file: string, env: Record<string, string>): Promise<Outcome> {
  const args = ['--test', '--test-reporter=tap', '--import', './test/helpers/ends-by-itself.ts', file];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'], env: { ...process.env, ...env } });
  const ended = once(child, 'exit');
  const broken: string[] = [];
  let tried = 0;
  for await (const line of createInterface(child.stdout)) {
    const [, not, name] = /^\s*(not )?ok \d+ - (.*)$/.exec(line) ?? [];
    if (name === undefined) continue;
    tried++;
    if (not) broken.push(name);
  }
  const [code] = await ended;
  if (code !== 0 && broken.length === 0) broken.push(`${file} ended with ${code}`);
  return { tried, broken };
}

const set = (name: string, file: string, env: Record<string, string> = {}): Attack => ({
  name,
  isLong: true,
  run: () => runTests(`test/${file}`, env),
});

const onBothPlanes = (name: string, file: string): Attack[] => [
  set(`${name}, built-in router`, `both-planes/${file}`),
  set(`${name}, HAProxy`, `both-planes/${file}`, { SLUICE_TEST_DATA_PLANE: 'haproxy' }),
];

export const sets: Attack[] = [
  ...onBothPlanes('smuggling over warm connections', 'smuggling.test.ts'),
  ...onBothPlanes('hostile HTTP/2', 'http2-hostile.test.ts'),
  ...onBothPlanes('slow and hostile visitors and instances', 'hostile.test.ts'),
  set('webhooks to addresses inside', 'both-databases/webhooks/address.test.ts'),
  set('paths out of the catalogue', 'catalogue/origin.test.ts'),
  set('readers that do not read', 'catalogue/slow-readers.test.ts'),
];

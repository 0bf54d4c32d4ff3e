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
  run: () => runTests(file, env),
});

const onBothPlanes = (name: string, file: string): Attack[] => [
  set(`${name}, built-in router`, `test/both-planes/${file}`),
  set(`${name}, HAProxy`, `test/both-planes/${file}`, { SLUICE_TEST_DATA_PLANE: 'haproxy' }),
];

export const sets: Attack[] = [
  ...onBothPlanes('smuggling over warm connections', 'smuggling.test.ts'),
  ...onBothPlanes('hostile HTTP/2', 'http2-hostile.test.ts'),
  ...onBothPlanes('slow and hostile visitors and instances', 'hostile.test.ts'),
  ...onBothPlanes('requests behind one that closes its connection', 'messages.test.ts'),
  set('webhooks to addresses inside', 'test/both-databases/webhooks/address.test.ts'),
  set('pages of internal registries, in failures', 'src/engines/registry/registry-faults.test.ts'),
  set('challenges of registries that take long to read', 'src/engines/registry/registry-auth.test.ts'),
  set('lines of logs, in events', 'test/both-databases/deployments/failures.test.ts'),
  set('quotas, and addresses of deleted projects', 'test/both-databases/accounts/account-quotas.test.ts'),
  set('rows in one transaction, every route', 'test/both-databases/http/transactions.test.ts'),
  set('certificates of what was deleted', 'test/traffic/haproxy.test.ts'),
  set('control characters on a terminal', 'src/cli/terminal/output.test.ts'),
  set('sources that no decoder should read whole', 'test/catalogue/refused-sources.test.ts'),
  set('paths out of the catalogue', 'test/catalogue/origin.test.ts'),
  set('readers that do not read', 'test/catalogue/slow-readers.test.ts'),
];

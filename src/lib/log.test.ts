import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { withoutSecrets } from './log.ts';

const logModule = JSON.stringify(new URL('./log.ts', import.meta.url).href);

/** A process that logs, and what it does afterwards. */
function logging(then: string) {
  const program = `const { createLog } = await import(${logModule});
    const log = createLog({ level: 'info', format: 'json' });
    for (let i = 0; i < 3000; i++) log.info({ i }, 'line');
    ${then}`;
  return spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['pipe', 'pipe', 'inherit'] });
}

const numbersIn = (output: string): number[] =>
  output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).i);
const inOrder = Array.from({ length: 3000 }, (_, i) => i);

for (const [how, then] of [
  ['exits at once', 'process.exit(0);'],
  [
    'flushes while lines are being written',
    'setTimeout(() => { log.info({ i: 3000 }); log.flush(() => process.exit(0)); }, 6);',
  ],
  ['throws', "process.on('uncaughtException', () => process.exit(0)); throw new Error('on purpose');"],
  ['has nothing more to do', ''],
] as const) {
  test(`every line is written, in order, by a process that ${how}`, async () => {
    const numbers = numbersIn(await text(logging(then).stdout!));
    assert.deepEqual(numbers.slice(0, 3000), inOrder);
    assert.deepEqual(numbers.slice(3000), then.includes('3000') ? [3000] : []);
  });
}

test('lines are written while the process goes on', async () => {
  const child = logging('process.stdin.resume();');
  let output = '';
  for await (const chunk of child.stdout!) {
    output += chunk;
    if (output.split('\n').length > 3000) break;
  }
  assert.deepEqual(numbersIn(output), inOrder);
  assert.equal(child.exitCode, null);
  child.stdin!.end();
  await once(child, 'exit');
});

test('what could be a secret is cut out wherever it stands, and nothing else is touched', () => {
  const request = {
    path: '/v1',
    headers: { Authorization: 'x', authorization: 'Bearer x' },
    list: [{ token: 'x', id: 1 }],
  };
  assert.deepEqual(withoutSecrets(request), {
    path: '/v1',
    headers: { Authorization: 'x', authorization: '[redacted]' },
    list: [{ token: '[redacted]', id: 1 }],
  });
  assert.equal(request.headers.authorization, 'Bearer x');
  const harmless = { token_id: 'tok_1', status: 200, nested: { at: null } };
  assert.equal(withoutSecrets(harmless), harmless);
});

test('a value that holds itself does not run for ever', () => {
  const loop: Record<string, unknown> = {};
  loop.self = loop;
  assert.ok(JSON.stringify(withoutSecrets(loop)).length < 1000);
});

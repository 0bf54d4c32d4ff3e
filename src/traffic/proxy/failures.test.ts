import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { FailedRequests } from './failures.ts';

test('ten lines a second, and the next one says how many requests have none', () => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line)) });
  let nowMs = 1_000_000;
  const failed = new FailedRequests({ now: () => nowMs } as never, log);
  const one = {
    requestId: 'req_1',
    host: 'shop.example',
    revision: 3,
    status: 502,
    code: 'ECONNRESET',
    reason: 'read ECONNRESET',
    tookMs: 7,
  };
  for (let i = 0; i < 25; i++) failed.note(one);
  assert.equal(lines.length, 10);
  assert.ok(lines.every((line) => line.requestId === 'req_1' && line.msg === 'a request failed' && !line.notLogged));
  nowMs += 1000;
  failed.note(one);
  failed.note(one);
  assert.deepEqual(
    lines.slice(10).map(({ notLogged }) => notLogged),
    [15, undefined],
  );
});

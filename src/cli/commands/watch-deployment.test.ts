import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Deployment } from '../../contract/deployments.ts';
import type { Paint } from '../terminal/output.ts';
import { widthOf } from '../terminal/table.ts';
import { liveLines, splitBar, summaryLines } from './watch-deployment.ts';

const paint: Paint = (_colour, text) => text;
const red: Paint = (colour, text) => (colour === 'red' ? `<${text}>` : text);
const now = Date.parse('2026-11-15T12:00:10Z');

const deployment = {
  id: 'dpl_01k9xw3v5qfk2t8m7c4b6d9e0h',
  environment: 'production',
  revision: 'r8',
  previous_revision: 'r7',
  image: 'registry.example/shop:2',
  state: 'canary',
  created_at: '2026-11-15T12:00:00Z',
  started_at: '2026-11-15T12:00:00Z',
  finished_at: null,
  failure: null,
  canary: {
    phase: 'baking',
    step: 1,
    percent: 10,
    until: '2026-11-15T12:00:52Z',
    stable: { requests: 1204, error_rate: 0.001, client_error_rate: 0.01, p95_ms: 12.3 },
    canary: { requests: 131, error_rate: 0.05, client_error_rate: 0.02, p95_ms: null },
    analysis: {
      verdict: 'inconclusive',
      reason: '',
      evidence: { errors: 41.7, latency: 0, client_errors: 1e9, needed: 200 },
    },
  },
} as unknown as Deployment;

const canaryWith = (more: object) => ({ ...deployment, canary: { ...deployment.canary!, ...more } }) as Deployment;

test('a canary: where it is, the split, and both sides below each other', () => {
  assert.deepEqual(liveLines(deployment, { now, columns: 60, paint }).slice(1), [
    '  step 1, 10 %: baking, 42 s left',
    `  r7 90 % ${'█'.repeat(32)}${'▒'.repeat(4)} 10 % r8`,
    '             requests  errors    4xx    p95',
    '  stable r7     1,204   0.1 %  1.0 %  12 ms',
    '  canary r8       131   5.0 %  2.0 %      -',
    '  inconclusive, odds 41 to 1 that it is worse',
  ]);
  assert.match(
    liveLines(deployment, { now, columns: 60, paint: red }).at(-2)!,
    /<5\.0 %>.*<2\.0 %>/,
    'what is worse is red',
  );
});

test('what it waits for is said with the command that helps', () => {
  const scene = { now, columns: 80, paint };
  assert.match(liveLines(canaryWith({ phase: 'paused' }), scene)[1]!, /paused \(sluice resume/);
  assert.match(
    liveLines(canaryWith({ phase: 'awaiting_approval', until: null }), scene)[1]!,
    /waits for sluice promote/,
  );
  assert.match(liveLines(canaryWith({ until: '2026-11-15T12:00:00Z' }), scene)[1]!, /waiting for requests/);
});

test('no line is wider than a terminal of 60 columns, whatever the share', () => {
  for (let percent = 1; percent < 100; percent++) {
    for (const line of liveLines(canaryWith({ percent }), { now, columns: 60, paint }).slice(1))
      assert.ok(widthOf(line) < 60, line);
    assert.equal(splitBar(percent, 10, paint).length, 10);
    assert.match(splitBar(percent, 10, paint), /█.*▒/, 'each side has a cell');
  }
});

test('what is left at the end', () => {
  const finished = { ...deployment, canary: null, finished_at: '2026-11-15T12:01:12Z' };
  assert.deepEqual(summaryLines({ ...finished, state: 'succeeded' } as Deployment, 'http://shop.example', paint), [
    '✔ succeeded: r8 serves all of production, after 1 min 12 s',
    '  http://shop.example',
  ]);
  const failure = { code: 'crashed', message: 'It ended.', log_tail: ['\x1b[31mboom\x1b[0m'] };
  assert.deepEqual(summaryLines({ ...finished, state: 'failed', failure } as Deployment, null, paint), [
    '  │ boom',
    '✖ failed: crashed: It ended.',
    '  r7 still serves production, after 1 min 12 s; its log: sluice logs r8',
  ]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type LineFields, readLineFields } from './line-fields.ts';

const at = Date.UTC(2026, 10, 15);
const nothing: LineFields = { level: null, message: null, loggedAt: null };

const lines: [string, LineFields][] = [
  [`{"level":50,"time":${at},"msg":"refused"}`, { level: 'error', message: 'refused', loggedAt: at }],
  [`{"level":"WARN","ts":${at / 1000},"message":"slow"}`, { level: 'warn', message: 'slow', loggedAt: at }],
  ['{"severity":"CRITICAL","@timestamp":"2026-11-15T00:00:00Z"}', { level: 'fatal', message: null, loggedAt: at }],
  ['{"level":{"a":1},"msg":3,"time":"never"}', nothing],
  ['{"level":"constructor"}', nothing],
  ['{ broken', nothing],
  ['[1]', nothing],
  ['ERROR in a plain line', nothing],
  ['time=now level=warning msg="slow query"', { ...nothing, level: 'warn' }],
];

for (const [line, said] of lines) test(line, () => assert.deepEqual(readLineFields(line), said));

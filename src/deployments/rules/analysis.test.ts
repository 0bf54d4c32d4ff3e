import assert from 'node:assert/strict';
import { test } from 'node:test';
import { environmentDefaults } from '../../contract/environments.ts';
import type { Side } from '../../traffic/measure/measurements.ts';
import { judge } from './analysis.ts';

const policy = environmentDefaults.canary; // 20 requests, 5 %, no latency limit
const side = (requests: number, errorRate = 0, p95Ms = 10): Side => ({ requests, errorRate, p95Ms });

for (const [name, stable, canary, limits, expected] of [
  ['enough requests, no errors', side(200), side(20), {}, 'good'],
  ['exactly at the limit', side(200), side(100, 0.05), {}, 'good'],
  ['above the limit', side(200), side(100, 0.06), {}, 'bad'],
  ['above the limit, but no worse than the stable one', side(200, 0.3), side(100, 0.3), {}, 'good'],
  ['above the limit and worse than the stable one', side(200, 0.3), side(100, 0.31), {}, 'bad'],
  [
    'above the limit where the stable one got nothing',
    { requests: 0, errorRate: null, p95Ms: null },
    side(100, 1),
    {},
    'bad',
  ],
  ['too few to tell', side(200), side(19, 1), {}, 'unknown'],
  ['too few, but the stable one was quiet too', side(19), side(3, 1), {}, 'good'],
  ['slow without a limit', side(200), side(100, 0, 9000), {}, 'good'],
  ['slower than the limit', side(200), side(100, 0, 900), { max_p95_ms: 500 }, 'bad'],
  ['slower than the limit, as the stable one', side(200, 0, 900), side(100, 0, 900), { max_p95_ms: 500 }, 'good'],
] as const) {
  test(`${name}: ${expected}`, () => assert.equal(judge({ stable, canary }, { ...policy, ...limits }).kind, expected));
}

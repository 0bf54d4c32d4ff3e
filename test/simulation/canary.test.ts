// A short run of `npm run simulate -- canary`: one cell of each kind, with the same rollouts every time.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { equalWorlds, run, worseWorlds } from '../../simulation/canary/cells.ts';

const rollouts = 60;
/** A promise of one in a hundred, as far as so few rollouts show it. */
const mostUndone = 2;

const equal = new Map(equalWorlds());
const worse = new Map(worseWorlds());

for (const name of [
  'independent errors 1 %; no cookies, 20/s, canary 10 %',
  'independent errors 50 %; no cookies, 2/s, canary 10 %',
  '2 % always fail; 400 visitors, 20/s, canary 10 %',
  'bursts on both sides; 400 visitors, 20/s, canary 10 %',
  'both sides slow at times; no cookies, 20/s, canary 10 %',
  'cold start, three times slower; no cookies, 20/s, canary 10 %',
  'one bad instance of 2; no cookies, 20/s, canary 30 %',
  'median 20 % slower, same p95; no cookies, 20/s, canary 10 %',
]) {
  test(`equal: ${name}`, () => {
    const undone = run(name, equal.get(name)!, rollouts).filter(({ verdict }) => verdict === 'bad');
    assert.ok(undone.length <= mostUndone, `${undone.length} of ${rollouts} undone`);
  });
}

for (const [name, withinRequests] of [
  ['all fail; 400 visitors, 2/s, canary 10 %', 8],
  ['errors 3 → 15 %; no cookies, 20/s, canary 10 %', 120],
  ['errors 1 → 5 %; no cookies, 20/s, canary 10 %', 300],
  ['p95 twice as long; no cookies, 20/s, canary 10 %', 200],
  ['one path of 40 dead; no cookies, 20/s, canary 10 %', 250],
] as const) {
  test(`worse: ${name}`, () => {
    const { world, found: wanted } = worse.get(name)!;
    const found = run(name, world, rollouts).filter(({ verdict }) => verdict === 'bad');
    assert.ok(found.length >= (wanted - 0.05) * rollouts, `${found.length} of ${rollouts} found`);
    const requests = found.map((one) => one.requests).sort((a, b) => a - b)[found.length >> 1]!;
    assert.ok(requests <= withinRequests, `half of them after ${requests} requests of the canary`);
  });
}

// A short run of the simulation: the same seeds every time, and one of the day.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openWorkplace, type Result, runSeed, today, type Workplace } from '../../simulation/run.ts';

const steps = 800;
let workplace: Workplace;

before(async () => {
  workplace = await openWorkplace();
});
after(() => workplace.clean());

const run = (seed: number): Promise<Result> => runSeed(workplace, { ...today, seed, steps });

test('a seed replays exactly, whatever ran before it', async () => {
  const first = await run(3);
  await run(4);
  const again = await run(3);
  assert.ok(first.steps > steps);
  assert.deepEqual(again, first);
  assert.notEqual((await run(5)).trace, first.trace);
});

const ofTheDay = Math.floor(Date.now() / 86_400_000);

for (const seed of [1, 2, 7, 8, ofTheDay]) {
  test(`seed ${seed} breaks no invariant`, async () => {
    const { breach, recent } = await run(seed);
    const again = `npm run simulate -- --seed ${seed} --steps ${steps} --trace`;
    assert.equal(breach, null, `${breach?.invariant}: ${breach?.message}\n${recent.join('\n')}\nagain: ${again}`);
  });
}

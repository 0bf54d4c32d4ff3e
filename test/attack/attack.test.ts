// The short form of `npm run attack`: the attacks that measure nothing, for a moment each.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { carryOut, tableOf } from '../../attack/attack.ts';
import { attacks } from '../../attack/attacks.ts';
import { startTarget } from '../../attack/target.ts';

const target = await startTarget();
after(() => target.stop());

for (const attack of attacks.filter(({ isLong, isMeasured }) => !isLong && !isMeasured)) {
  test(attack.name, async () => {
    const row = await carryOut(attack, target, true);
    console.log(tableOf([row]).join('\n'));
    assert.deepEqual(row.broken, []);
    assert.ok(row.tried > 0);
  });
}

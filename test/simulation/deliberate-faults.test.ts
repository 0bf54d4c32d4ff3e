// The simulation finds faults in the code. Those that take it a few seeds are tried here; `npm run simulate -- --fault all`
// tries every one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deliberateFaults, patched, runWithFault } from '../../simulation/deliberate-faults.ts';

test('every deliberate fault fits the code', () => {
  for (const fault of Object.values(deliberateFaults)) {
    assert.ok(patched(fault).get(fault.file)!.includes(fault.to), fault.what);
  }
});

for (const name of ['acknowledge-before-commit', 'event-outside-the-transaction', 'stop-before-the-routers-moved']) {
  test(`the simulation finds ${name}`, () => {
    const { found, output } = runWithFault(deliberateFaults[name]!, '1..20', 2000);
    assert.ok(found, output);
  });
}

// The simulation finds faults in the code. One that takes it only one seed is tried here; `npm run simulate -- --fault all`
// tries every one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deliberateFaults, patched, runWithFault } from '../../simulation/deliberate-faults.ts';

test('every deliberate fault fits the code', () => {
  for (const fault of Object.values(deliberateFaults)) assert.ok(patched(fault).includes(fault.to));
});

test('acknowledging before the commit is found', () => {
  const { found, output } = runWithFault(deliberateFaults['acknowledge-before-commit']!, '1..20', 2000);
  assert.ok(found, output);
});

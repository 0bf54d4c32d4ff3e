// The small sibling of `npm run soak`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { soak } from '../../helpers/soak.ts';

test('200 events, twice kill -9: each arrives, unchanged, again only where an answer was lost', async () => {
  const result = await soak(200, 2, () => {});
  assert.ok(result.arrivals >= 200);
  assert.ok(result.repeatedAfterFailure > 0, 'the receivers gave trouble');
});

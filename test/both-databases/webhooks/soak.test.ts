// The small sibling of `npm run soak`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { soak } from '../../helpers/soak.ts';

test('2,000 events, three times kill -9: each arrives, unchanged, again only where an answer was lost', async () => {
  const result = await soak(2000, 3, () => {});
  assert.ok(result.arrivals >= 2000);
  assert.ok(result.repeatedAfterFailure > 0, 'the receivers gave trouble');
});

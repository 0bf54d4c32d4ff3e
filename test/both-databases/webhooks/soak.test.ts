// The small sibling of `npm run soak`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { soak } from '../../helpers/soak.ts';

test('500 events, three times kill -9: each arrives, unchanged, again only where an answer was lost', async () => {
  const result = await soak(500, 3, () => {});
  assert.ok(result.arrivals >= 500);
  assert.ok(result.repeatedAfterFailure > 0, 'the receivers gave trouble');
});

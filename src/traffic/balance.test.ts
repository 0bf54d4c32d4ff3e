import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { bucketOfCookies, buckets, cookieOf, createBuckets, pickCandidate, seesCanary } from './balance.ts';

const bucket = fc.integer({ min: 0, max: buckets - 1 });
const revision = fc.integer({ min: 1, max: 1_000_000 });
const percent = fc.integer({ min: 0, max: 100 });

describe('who sees the canary', () => {
  test('raising the percentage moves no visitor back', () => {
    fc.assert(
      fc.property(bucket, revision, percent, percent, (visitor, canary, one, other) => {
        const [low, high] = [Math.min(one, other), Math.max(one, other)];
        if (seesCanary(visitor, canary, low)) assert.ok(seesCanary(visitor, canary, high));
      }),
    );
  });

  test('of all buckets exactly the percentage, whatever the revision', () => {
    fc.assert(
      fc.property(revision, percent, (canary, share) => {
        let seen = 0;
        for (let visitor = 0; visitor < buckets; visitor++) if (seesCanary(visitor, canary, share)) seen++;
        assert.equal(seen, share * 100);
      }),
    );
  });

  test('0 is no visitor and 100 is every visitor', () => {
    fc.assert(
      fc.property(bucket, revision, (visitor, canary) => {
        assert.equal(seesCanary(visitor, canary, 0), false);
        assert.equal(seesCanary(visitor, canary, 100), true);
      }),
    );
  });

  test('the same visitors are not always first', () => {
    const first = (canary: number) =>
      Array.from({ length: buckets }, (_, visitor) => visitor).filter((visitor) => seesCanary(visitor, canary, 10));
    const again = new Set(first(7));
    assert.equal(first(8).filter((visitor) => again.has(visitor)).length, 0);
  });
});

describe('buckets for visitors without one', () => {
  test('10,000 in a row hold every share to a tenth of a percentage point, from any start', () => {
    const start = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(start, revision, percent, (from, canary, share) => {
        const next = createBuckets(from);
        let seen = 0;
        for (let i = 0; i < 10_000; i++) if (seesCanary(next(), canary, share)) seen++;
        assert.ok(Math.abs(seen / 100 - share) <= 0.1, `${seen / 100} instead of ${share} %`);
      }),
    );
  });

  test('every one of them is a bucket', () => {
    const next = createBuckets(0.999999999);
    for (let i = 0; i < 10_000; i++) {
      const made = next();
      assert.ok(Number.isInteger(made) && made >= 0 && made < buckets);
    }
  });
});

describe('the cookie', () => {
  test('what was given comes back', () => {
    fc.assert(
      fc.property(bucket, (visitor) => {
        const pair = cookieOf(visitor).split(';')[0]!;
        assert.equal(bucketOfCookies(pair), visitor);
        assert.equal(bucketOfCookies(`a=b; ${pair}; c=d`), visitor);
        assert.equal(bucketOfCookies(`a=b;${pair}`), visitor);
      }),
    );
  });

  for (const header of [
    '',
    'a=b',
    'sluice_revision=',
    'sluice_revision=r2',
    'sluice_revision=10000',
    'sluice_revision=-1',
    'sluice_revision=1.5',
    'sluice_revision="12"',
    'xsluice_revision=12',
    'sluice_revision =12',
    'sluice_revision=12 ',
  ]) {
    test(`"${header}" is none`, () => assert.equal(bucketOfCookies(header), -1));
  }

  test('a broken one does not hide a good one, and any text is taken without harm', () => {
    assert.equal(bucketOfCookies('sluice_revision=x; sluice_revision=12'), 12);
    fc.assert(
      fc.property(fc.string(), (text) => {
        const found = bucketOfCookies(`${text}sluice_revision=${text}`);
        assert.ok(found >= -1 && found < buckets);
      }),
    );
  });
});

describe('which instance', () => {
  const candidate = (underWay: number, ejectedUntil = 0) => ({ underWay, ejectedUntil });

  test('the one with the fewest requests under way', () => {
    assert.equal(pickCandidate([candidate(3), candidate(1), candidate(2)], 0, 1000, []), 1);
  });

  test('ties in turn', () => {
    const all = [candidate(0), candidate(0), candidate(0)];
    assert.deepEqual(
      [0, 1, 2, 3].map((turn) => pickCandidate(all, turn, 1000, [])),
      [0, 1, 2, 0],
    );
  });

  test('not one that was tried, or that took no connection a moment ago', () => {
    const [tried, ejected, left] = [candidate(0), candidate(0, 1001), candidate(9)];
    assert.equal(pickCandidate([tried, ejected, left], 0, 1000, [tried]), 2);
    assert.equal(pickCandidate([tried, ejected], 0, 1000, [tried]), -1);
    assert.equal(pickCandidate([tried, ejected], 0, 1001, [tried]), 1);
    assert.equal(pickCandidate([], 5, 1000, []), -1);
  });
});

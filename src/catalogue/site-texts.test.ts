import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatSums, parseSums } from './site-texts.ts';

const digest = (letter: string) => letter.repeat(64);

test('what is written is read back, sorted by path', () => {
  const text = formatSums(
    new Map([
      ['b/x', digest('b')],
      ['a/x', digest('a')],
    ]),
  );
  assert.equal(text, `${digest('a')}  a/x\n${digest('b')}  b/x\n`);
  assert.deepEqual(parseSums(text), {
    digests: new Map([
      ['a/x', digest('a')],
      ['b/x', digest('b')],
    ]),
    faults: [],
  });
});

for (const [what, text, told] of [
  ['a short digest', `abc  a\n`, /line 1/],
  ['a path outside', `${digest('a')}  ../a\n`, /outside/],
  ['an unsorted list', `${digest('a')}  b\n${digest('a')}  a\n`, /out of order/],
  ['a cut-off file', `${digest('a')}  a`, /does not end/],
] as const) {
  test(`tells ${what}`, () => assert.match(parseSums(text).faults.join(), told));
}

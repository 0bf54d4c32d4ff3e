// The words of the house: names that a newcomer would have to learn have given way to the usual ones.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const sources = globSync('{src,console/src}/**/*.{ts,tsx,js}').filter((path) => !path.endsWith('.test.ts'));
const texts = [...sources, ...globSync('{docs/**/*.md,*.md,src/**/*.{txt,html}}')];

/** Names in code: declared, or called as a method. */
const oldNames =
  'strangers?|bell|ring|heard|tell|told|tellOf\\w*|announce|kick|touch|surroundings|ways?|steer\\w*|pointed';
const declared = new RegExp(`\\b(?:const|let|function|interface|type|class)\\s+(?:${oldNames})\\b`, 'i');
const called = /\.#?(?:tell|ring|heard|kick|announce|touch)\(/;

/** What people read. */
const oldTexts = [
  /Somebody aborted/i,
  /\bwhoever\b/i,
  /\bnobody's\b/i,
  /\bby and by\b/i,
  /Making the image ready/i,
  /the revision before\b/i,
  /not one of this service/i,
  /Nobody can be asked/i,
  /First share/,
  /Goes on:/,
  /Least requests|Highest p95/,
  /\bnever lie\b|no bad luck|have no business|not what it was taken for/i,
  /own-answers|\bstrangers?\b/i,
];
/** Only on the screens of the console: elsewhere these are ordinary English. */
const oldLabels = /['">](?:How|Every|Time limit|Start limit|What happened|What fired|was asked for)['"<]/;

function linesWith(paths: string[], pattern: RegExp): string[] {
  return paths.flatMap((path) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1} ${line.trim()}`] : [])),
  );
}

test('no old names in code', () => {
  assert.deepEqual([...linesWith(sources, declared), ...linesWith(sources, called)], []);
});

for (const pattern of oldTexts) {
  test(`no ${pattern} in sources and docs`, () => assert.deepEqual(linesWith(texts, pattern), []));
}

test('no old labels in the console', () => {
  assert.deepEqual(linesWith(globSync('console/src/**/*.tsx'), oldLabels), []);
});

for (const name of ['Wanted', 'Ask', 'Place', 'Counts']) {
  test(`${name} has one meaning at most`, () => {
    const declarations = linesWith(sources, new RegExp(`\\b(?:interface|type|class) ${name}\\b`));
    assert.ok(declarations.length <= 1, declarations.join('\n'));
  });
}

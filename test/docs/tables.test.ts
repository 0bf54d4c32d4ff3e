// Tables are for what one looks up: a cell that needs more than 25 words belongs into the prose around its table.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const most = 25;

const wordsIn = (cell: string): number => cell.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;

/** Cells of the rows of all tables; lines within code blocks are no rows. */
function* cellsOf(page: string): Generator<{ line: number; cell: string }> {
  let inCode = false;
  for (const [index, text] of page.split('\n').entries()) {
    if (text.startsWith('```')) inCode = !inCode;
    if (inCode || !text.startsWith('|')) continue;
    for (const cell of text.split(/(?<!\\)\|/)) yield { line: index + 1, cell: cell.trim() };
  }
}

test(`no cell of a table has more than ${most} words`, () => {
  const paths = globSync(['*.md', 'docs/**/*.md']);
  assert.ok(paths.includes('README.md') && paths.includes('docs/settings.md'));
  const long = paths.flatMap((path) =>
    [...cellsOf(readFileSync(path, 'utf8'))]
      .filter(({ cell }) => wordsIn(cell) > most)
      .map(({ line, cell }) => `${path}:${line} has ${wordsIn(cell)} words: ${cell}`),
  );
  assert.deepEqual(long, []);
});

test('words are counted, marks are not, and a pipe within a cell does not end it', () => {
  const page = `| ${'word '.repeat(25)}— → | a \\| b |\n\n\`\`\`\n| ${'word '.repeat(30)} |\n\`\`\`\n`;
  assert.deepEqual(
    [...cellsOf(page)].map(({ cell }) => wordsIn(cell)),
    [0, 25, 2, 0],
  );
});

test('every rule of Apple’s names tests that exist, by the words of their titles', () => {
  const page = readFileSync('docs/catalogue.md', 'utf8');
  const [section] = /## Apple’s authoring rules[\s\S]*?(?=\n## )/.exec(page.replaceAll("'", '’'))!;
  const rules = section.split('\n').filter((line) => /^\| .*\.test\.ts/.test(line));
  assert.ok(rules.length >= 20);
  for (const rule of rules)
    for (const [, path, words] of rule.matchAll(/`([\w./-]+\.test\.ts)`(?:: ([^;|`]*[^;|`\s]))?/g)) {
      const text = readFileSync(path!.startsWith('src/') ? path! : `test/catalogue/${path}`, 'utf8');
      if (words !== undefined) assert.ok(text.includes(`'${words}`), `${path} has no test that begins with “${words}”`);
    }
});

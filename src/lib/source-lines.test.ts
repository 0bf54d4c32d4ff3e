// Against Node's own reading of source maps, for what the installed bundler makes.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { build } from 'rolldown';
import { encodeSourceLines, SourceLines } from './source-lines.ts';

const folder = mkdtempSync(join(tmpdir(), 'sluice-lines-'));
after(() => rmSync(folder, { recursive: true, force: true }));

test('each place of a bundle leads to the line that its source map gives', async () => {
  writeFileSync(
    join(folder, 'one.ts'),
    `import { two } from './two.ts';\n\n/** Says why. */\nexport function one(a: number): number[] {\n  return [a,\n\n    a + 1].map((each) =>\n      two(each));\n}\n`,
  );
  writeFileSync(
    join(folder, 'two.ts'),
    `interface Gone {}\n\nexport const two = (n: number): number => {\n  throw new Error(\n    \`\${n}\`,\n  );\n};\n`,
  );
  await build({
    input: join(folder, 'one.ts'),
    output: { file: join(folder, 'all.js'), sourcemap: true },
    logLevel: 'silent',
  });
  const payload = JSON.parse(readFileSync(join(folder, 'all.js.map'), 'utf8'));
  const lines = new SourceLines(encodeSourceLines(payload, (source) => source));
  const map = new SourceMap(payload);
  const bundle = readFileSync(join(folder, 'all.js'), 'utf8').split('\n');
  const seen = new Set<string>();
  for (const [index, text] of bundle.entries()) {
    for (let column = 0; column < text.length; column++) {
      const entry = map.findEntry(index, column);
      // Where the line has no place of its own before this one, Node goes back to an earlier line.
      if (!('originalSource' in entry) || entry.generatedLine !== index) continue;
      const expected = `${entry.originalSource}:${entry.originalLine + 1}`;
      assert.equal(lines.find(index + 1, column + 1), expected);
      seen.add(expected);
    }
  }
  assert.ok(seen.has('one.ts:7') && seen.has('two.ts:4'), [...seen].join());
});

test('what is outside of the bundle has no source', () => {
  const lines = new SourceLines(encodeSourceLines({ sources: ['a.ts'], mappings: ';AAAA' }, (source) => source));
  assert.deepEqual(
    [lines.find(0, 1), lines.find(1, 1), lines.find(2, 1), lines.find(3, 1)],
    [null, null, 'a.ts:1', null],
  );
});

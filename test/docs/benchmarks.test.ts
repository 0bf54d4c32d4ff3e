// docs/benchmarks.md is written by `npm run bench -- --write`: the form of the page, from results that are made up.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { benchmarksOfPage, benchmarksPage, notesOf, type Run } from '../../bench/lib/page.ts';

const run: Run = {
  commit: '`abc1234`',
  day: '2026-01-02',
  machine: '2 cores, 8 GiB of memory, Linux 6, Node.js 24.0.0',
  command: 'npm run bench -- --write',
  benchmarks: [
    {
      name: 'api',
      results: [
        { what: 'ours / theirs', measured: '0.40', target: '≥ 0.65', met: false },
        { what: 'a | b', measured: '3 ms', target: '< 5 ms', met: true },
      ],
    },
    { name: 'start', results: [{ what: 'memory', measured: '59 MiB', target: null, met: null }] },
  ],
};

test('a page has the run, the machine, a table per benchmark, and how many targets were missed', () => {
  const page = benchmarksPage(run, '## Notes\n\nWhy.\n');
  assert.equal(
    page,
    `# Benchmarks

One run of \`npm run bench -- --write\` at commit \`abc1234\` on 2026-01-02. Machine: 2 cores, 8 GiB of memory, Linux 6, Node.js 24.0.0.

Most values are ratios of two programs measured in turns, because absolute times say more about the machine than about Sluice. "A / B" is A divided by B.

Sluice misses 1 of 2 targets. The [notes](#notes) say why.

## API

| what | measured | target |  |
| --- | --- | --- | --- |
| ours / theirs | 0.40 | ≥ 0.65 | **missed** |
| a \\| b | 3 ms | < 5 ms | met |

## Start and memory

| what | measured | target |  |
| --- | --- | --- | --- |
| memory | 59 MiB |  |  |

<!-- Notes. A run rewrites everything above this line and keeps everything below it. -->

## Notes

Why.
`,
  );
});

test('the next run keeps the notes, and a page without any gets a heading for them', () => {
  const first = benchmarksPage(run, '## Notes\n\nWhy.');
  const second = benchmarksPage({ ...run, commit: '`def5678`' }, notesOf(first));
  assert.equal(second, first.replace('abc1234', 'def5678'));
  assert.equal(notesOf('# Benchmarks\n'), '## Notes');
});

test('docs/benchmarks.md has that form, and a section for every benchmark of the page', () => {
  const page = readFileSync('docs/benchmarks.md', 'utf8');
  assert.match(
    page,
    /^# Benchmarks\n\nOne run of `npm run bench.*` at commit `[0-9a-f]{7}`.* on \d{4}-\d\d-\d\d\. Machine: /,
  );
  const everySection = { ...run, benchmarks: benchmarksOfPage.map((name) => ({ name, results: [] })) };
  const headings = (text: string) => text.match(/^## .*$/gm);
  assert.deepEqual(headings(page)!.slice(0, benchmarksOfPage.length), headings(benchmarksPage(everySection, '')));
  assert.match(notesOf(page), /^## Notes\n\n\S/);
  const generated = page.split('<!--')[0]!;
  const missed = generated.match(/\| \*\*missed\*\* \|$/gm)!.length;
  const judged = missed + generated.match(/\| met \|$/gm)!.length;
  assert.ok(page.includes(`Sluice misses ${missed} of ${judged} targets.`));
});

// Every link between pages leads to a file that exists and, with a fragment, to a heading in it.
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

const pages = globSync(['*.md', 'docs/**/*.md']);
const withoutCode = (page: string) => page.replaceAll(/^```.*?^```/gms, '');

/** As GitHub makes them of headings. */
function anchorsOf(path: string): Set<string> {
  const headings = withoutCode(readFileSync(path, 'utf8')).matchAll(/^#+ (.+)$/gm);
  const anchor = (heading: string) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-');
  return new Set([...headings].map(([, heading]) => anchor(heading!)));
}

for (const path of pages) {
  test(`the links of ${path}`, () => {
    for (const [, target] of withoutCode(readFileSync(path, 'utf8')).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target!)) continue;
      const [file, fragment] = target!.split('#') as [string, string?];
      const linked = file === '' ? path : join(dirname(path), file);
      assert.ok(existsSync(linked), `${path} links to ${target}`);
      if (fragment !== undefined) assert.ok(anchorsOf(linked).has(fragment), `${path} links to ${target}`);
    }
  });
}

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

test('every boundary of the threat model names tests, and those exist', () => {
  const rows = readFileSync('docs/threat-model.md', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| ') && line.includes('→'));
  assert.ok(rows.length > 10);
  for (const row of rows) {
    const named = [...row.matchAll(/`([\w./-]+\.test\.ts)`/g)].map(([, path]) => path!);
    assert.ok(named.length > 0, row);
    for (const path of named) assert.ok(existsSync(path.startsWith('src/') ? path : `test/${path}`), path);
  }
});

import assert from 'node:assert/strict';
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { appendLedger, foldLedger, readLedger } from './ledger.ts';

async function ledgerIn(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-ledger-'));
  t.after(() => rm(folder, { recursive: true }));
  return join(folder, 'ledger.jsonl');
}

const line = (id: string) => ({ type: 'withdraw' as const, at: '2026-01-01T00:00:00.000Z', id });

test('lines are appended, never rewritten', async (t) => {
  const path = await ledgerIn(t);
  const end = await appendLedger(path, 0, [line('a')]);
  const before = await readFile(path, 'utf8');
  await appendLedger(path, end, [line('b'), line('c')]);
  const after = await readFile(path, 'utf8');
  assert.ok(after.startsWith(before));
  assert.deepEqual(
    (await readLedger(path)).lines.map(({ id }) => id),
    ['a', 'b', 'c'],
  );
});

test('a line that a crash tore is dropped, and the next append takes its place', async (t) => {
  const path = await ledgerIn(t);
  await appendLedger(path, 0, [line('a')]);
  await appendFile(path, '{"type":"publish","id":"to');
  const torn = await readLedger(path);
  assert.deepEqual(torn.lines, [line('a')]);
  await appendLedger(path, torn.completeBytes, [line('b')]);
  assert.deepEqual((await readLedger(path)).lines, [line('a'), line('b')]);
});

test('a damaged line in the middle stops everything, with its number', async (t) => {
  const path = await ledgerIn(t);
  await writeFile(path, `${JSON.stringify(line('a'))}\nnonsense\n${JSON.stringify(line('b'))}\n`);
  await assert.rejects(readLedger(path), /line 2 is damaged/);
});

test('a ledger that is not there is empty', async (t) => {
  assert.deepEqual(await readLedger(await ledgerIn(t)), { lines: [], completeBytes: 0 });
});

test('a withdrawal without a publish, from the tombstones of a site, keeps its id withdrawn', () => {
  const record = foldLedger([{ type: 'withdraw', at: '', id: 'a' }]).get('a');
  assert.deepEqual([record?.withdrawn, record?.purged, record?.files.size], [true, false, 0]);
});

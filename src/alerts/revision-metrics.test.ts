import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openDatabase } from '../db/open-database.ts';
import { latencyBoundsMs } from '../traffic/latency.ts';
import { RevisionMetrics } from './revision-metrics.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'sluice-metrics-'));
after(() => rmSync(dataDir, { recursive: true }));

const measured = (requests: number) => ({
  ...{ project: 'prj_a', environment: 'production', revision: 1, at: 0, requests, errors: 0 },
  latency: latencyBoundsMs.map(() => 0).concat(requests),
});
const requestsIn = (text: string) => /^sluice_requests_total\{.*\} (\d+)$/m.exec(text)?.[1];

test('while the database fails, the router’s counters are still there; the text is produced every five seconds', async () => {
  // Without migrations there is no table, so every query fails.
  const { db, close } = await openDatabase({ url: null, dataDir, onConnectionLost: () => {} });
  let nowMs = 0;
  const metrics = new RevisionMetrics({ db, clock: { now: () => nowMs } });
  metrics.note('router', [measured(3)]);
  const text = await metrics.text();
  assert.equal(requestsIn(text), '3');
  assert.doesNotMatch(text, /^sluice_(alerts|healthy|certificate)/m);
  metrics.note('router', [measured(4)]);
  nowMs = 4999;
  assert.equal(requestsIn(await metrics.text()), '3');
  nowMs = 5000;
  assert.equal(requestsIn(await metrics.text()), '4');
  await close();
});

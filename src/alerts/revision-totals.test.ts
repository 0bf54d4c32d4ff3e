import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { latencyBoundsMs } from '../traffic/latency.ts';
import { registerRouterMetrics } from './revision-metrics.ts';
import { RevisionTotals, revisionKey } from './revision-totals.ts';

const now = 1_000_000;
const minute = 60_000;
const measured = (at: number, requests: number, errors = 0, revision = 1) => ({
  ...{ project: 'prj_a', environment: 'production', revision, at, requests, errors },
  latency: latencyBoundsMs.map((bound) => (bound === 7 ? requests : 0)).concat(0),
});
const routed = new Set([revisionKey('prj_a', 'production', 1)]);
const textOf = (totals: RevisionTotals) => {
  const registry = new Registry();
  registerRouterMetrics(registry, totals);
  return registry.metrics();
};
const valuesOf = async (totals: RevisionTotals, name: string, nowMs = now, to = routed) => {
  totals.forgetUnrouted(to, nowMs);
  return [...(await textOf(totals)).matchAll(new RegExp(`^${name}\\{.*\\} (.*)$`, 'gm'))].map(([, value]) =>
    Number(value),
  );
};

test('absolute numbers that come again are not added again', async () => {
  const totals = new RevisionTotals();
  totals.note('router', [measured(0, 5, 1)]);
  totals.note('router', [measured(0, 7, 2), measured(10_000, 3)]);
  totals.note('router', [measured(10_000, 3)]);
  assert.deepEqual(await valuesOf(totals, 'sluice_requests_total'), [10]);
  assert.deepEqual(await valuesOf(totals, 'sluice_request_errors_total'), [2]);
});

test('a counter never goes back, whatever is settled meanwhile', async () => {
  const totals = new RevisionTotals();
  let last = 0;
  for (let at = 0; at < 20 * minute; at += 10_000) {
    totals.note('router', [measured(at, 4)]);
    totals.note('router', [measured(at, 5)]);
    const [value] = await valuesOf(totals, 'sluice_requests_total', at);
    assert.equal(value, last + 5);
    last = value!;
  }
});

test('a revision that is no longer routed to is forgotten, a quiet one that is stays', async () => {
  const totals = new RevisionTotals();
  totals.note('router', [measured(0, 5), measured(0, 6, 0, 2)]);
  assert.deepEqual(await valuesOf(totals, 'sluice_requests_total', minute), [5, 6]);
  assert.deepEqual(await valuesOf(totals, 'sluice_requests_total', 60 * minute), [5]);
  assert.deepEqual(await valuesOf(totals, 'sluice_requests_total', 61 * minute, new Set()), []);
});

test('the text is as Prometheus reads it; buckets hold all that is faster', async () => {
  const totals = new RevisionTotals();
  totals.note('router', [measured(0, 5, 1)]);
  const text = await textOf(totals);
  const labels = 'project="prj_a",environment="production",revision="r1"';
  for (const line of [
    '# TYPE sluice_requests_total counter',
    `sluice_requests_total{${labels}} 5`,
    `sluice_request_duration_seconds_bucket{${labels},le="0.005"} 0`,
    `sluice_request_duration_seconds_bucket{${labels},le="0.01"} 5`,
    `sluice_request_duration_seconds_bucket{${labels},le="10"} 5`,
    `sluice_request_duration_seconds_bucket{${labels},le="+Inf"} 5`,
    `sluice_request_duration_seconds_count{${labels}} 5`,
  ]) {
    assert.ok(text.split('\n').includes(line), `${line} is not in\n${text}`);
  }
});

test('a label may hold any character', async () => {
  const totals = new RevisionTotals();
  totals.note('router', [{ ...measured(0, 1), project: 'q"\\\n' }]);
  const line = 'sluice_requests_total{project="q\\"\\\\\\n",environment="production",revision="r1"} 1';
  const text = await textOf(totals);
  assert.ok(text.split('\n').includes(line), text);
});

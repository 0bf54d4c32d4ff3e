import assert from 'node:assert/strict';
import { test } from 'node:test';
import { latencyBoundsMs } from '../traffic/measure/measurements.ts';
import { expose } from './exposition.ts';
import { revisionKey, Totals } from './totals.ts';

const now = 1_000_000;
const minute = 60_000;
const measured = (at: number, requests: number, errors = 0, revision = 1) => ({
  ...{ project: 'prj_a', environment: 'production', revision, at, requests, errors },
  latency: latencyBoundsMs.map((bound) => (bound === 7 ? requests : 0)).concat(0),
});
const routed = new Set([revisionKey('prj_a', 'production', 1)]);
const valuesOf = (totals: Totals, name: string, nowMs = now, to = routed) =>
  totals
    .figures(to, nowMs)
    .find((figure) => figure.name === name)!
    .samples.map(({ value }) => value);

test('absolute numbers that come again are not added again', () => {
  const totals = new Totals();
  totals.note([measured(0, 5, 1)]);
  totals.note([measured(0, 7, 2), measured(10_000, 3)]);
  totals.note([measured(10_000, 3)]);
  assert.deepEqual(valuesOf(totals, 'sluice_requests_total'), [10]);
  assert.deepEqual(valuesOf(totals, 'sluice_request_errors_total'), [2]);
});

test('a counter never goes back, whatever is settled meanwhile', () => {
  const totals = new Totals();
  let last = 0;
  for (let at = 0; at < 20 * minute; at += 10_000) {
    totals.note([measured(at, 4)]);
    totals.note([measured(at, 5)]);
    const [value] = valuesOf(totals, 'sluice_requests_total', at);
    assert.equal(value, last + 5);
    last = value!;
  }
});

test('a revision that is no longer routed to is forgotten, a quiet one that is stays', () => {
  const totals = new Totals();
  totals.note([measured(0, 5), measured(0, 6, 0, 2)]);
  assert.deepEqual(valuesOf(totals, 'sluice_requests_total', minute), [5, 6]);
  assert.deepEqual(valuesOf(totals, 'sluice_requests_total', 60 * minute), [5]);
  assert.deepEqual(valuesOf(totals, 'sluice_requests_total', 61 * minute, new Set()), []);
});

test('the text is as Prometheus reads it; buckets hold all that is faster', () => {
  const totals = new Totals();
  totals.note([measured(0, 5, 1)]);
  const text = expose(totals.figures(routed, now));
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
  const odd = expose([
    {
      name: 'x',
      type: 'gauge',
      help: 'X.',
      samples: [
        { labels: { a: 'q"\\\n' }, value: 1 },
        { labels: {}, value: 2 },
      ],
    },
  ]);
  assert.equal(odd, '# HELP x X.\n# TYPE x gauge\nx{a="q\\"\\\\\\n"} 1\nx 2\n');
});

// What the router of this process counted, as Prometheus metrics by revision.
import { Counter, type Histogram, type Registry } from 'prom-client';
import { latencyBoundsMs } from '../traffic/measure/measurements.ts';
import type { RevisionTotal, Totals } from './totals.ts';

/** A subset of the router's bounds: enough for a quantile, and few enough for many revisions. */
const shownBoundsMs = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];

const labelNames = ['project', 'environment', 'revision'] as const;
const ofRouter = 'by the router of this process, by revision';

export function registerRouterMetrics(registry: Registry, totals: Totals): void {
  const counter = (name: string, help: string, countOf: (total: RevisionTotal) => number) =>
    new Counter({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        this.reset();
        for (const total of totals.list()) this.inc(total.labels, countOf(total));
      },
    });
  counter('sluice_requests_total', `Requests answered ${ofRouter}.`, ({ requests }) => requests);
  counter(
    'sluice_request_errors_total',
    `Answers of 500 or above, or none at all, given ${ofRouter}.`,
    ({ errors }) => errors,
  );
  registerDurations(registry, totals);
}

/**
 * prom-client's Histogram counts observations one by one and cannot take over counts. A registry needs no more of a metric
 * than its name and get(), although its types ask for one of its own classes.
 */
function registerDurations(registry: Registry, totals: Totals): void {
  const name = 'sluice_request_duration_seconds';
  const help = `Time to the head of the answer, measured ${ofRouter}.`;
  const get = async () => ({
    name,
    help,
    type: 'histogram',
    values: totals.list().flatMap((total) => histogramValues(name, total)),
  });
  registry.registerMetric({ name, get } as unknown as Histogram);
}

function histogramValues(name: string, { labels, latency }: RevisionTotal) {
  const bucket = (le: string, value: number) => ({ metricName: `${name}_bucket`, labels: { ...labels, le }, value });
  const values = [];
  let seen = 0;
  for (const [index, count] of latency.entries()) {
    seen += count;
    const bound = latencyBoundsMs[index];
    if (bound !== undefined && shownBoundsMs.includes(bound)) values.push(bucket(String(bound / 1000), seen));
  }
  return [...values, bucket('+Inf', seen), { metricName: `${name}_count`, labels, value: seen }];
}

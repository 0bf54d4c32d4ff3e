import { Counter, collectDefaultMetrics, type Metric, Registry } from 'prom-client';

export interface HttpMetrics {
  registry: Registry;
  observe(method: string, route: string, status: number, seconds: number): void;
  observeAttempt(succeeded: boolean): void;
}

export function createMetrics(): HttpMetrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const durations = new RequestDurations();
  registry.registerMetric(durations as unknown as Metric);
  const attempts = new Counter({
    name: 'sluice_webhook_attempts_total',
    help: 'Webhook deliveries sent, by how that went.',
    labelNames: ['outcome'],
    registers: [registry],
  });
  const [succeeded, failed] = ['succeeded', 'failed'].map((outcome) => attempts.labels(outcome));
  return {
    registry,
    observeAttempt: (well) => (well ? succeeded! : failed!).inc(),
    observe: (method, route, status, seconds) => durations.observe(method, route, status, seconds),
  };
}

const upperBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

interface Durations {
  labels: { method: string; route: string; status: string };
  /** How many took no longer than each bound, but longer than the one before it. */
  counts: number[];
  count: number;
  sum: number;
}

/**
 * A histogram as prom-client has them. Its own one formats the labels of every observation anew, which costs more than
 * anything else that is done about a response after it was sent.
 */
class RequestDurations {
  readonly name = 'sluice_http_request_duration_seconds';
  readonly #series = new Map<string, Durations>();

  observe(method: string, route: string, status: number, seconds: number): void {
    const key = `${method} ${route} ${status}`;
    let series = this.#series.get(key);
    if (!series) {
      const counts = upperBounds.map(() => 0);
      series = { labels: { method, route, status: String(status) }, counts, count: 0, sum: 0 };
      this.#series.set(key, series);
    }
    const bucket = upperBounds.findIndex((bound) => seconds <= bound);
    if (bucket !== -1) series.counts[bucket]!++;
    series.count++;
    series.sum += seconds;
  }

  /** What prom-client asks a metric for. */
  get() {
    return {
      name: this.name,
      help: 'Time to answer a request of the API, by route and status.',
      type: 'histogram',
      aggregator: 'sum',
      values: [...this.#series.values()].flatMap((series) => this.#valuesOf(series)),
    };
  }

  #valuesOf({ labels, counts, count, sum }: Durations) {
    const metricName = `${this.name}_bucket`;
    let upTo = 0;
    const buckets = counts.map((own, index) => {
      upTo += own;
      return { metricName, labels: { le: upperBounds[index], ...labels }, value: upTo };
    });
    return [
      ...buckets,
      { metricName, labels: { le: '+Inf', ...labels }, value: count },
      { metricName: `${this.name}_sum`, labels, value: sum },
      { metricName: `${this.name}_count`, labels, value: count },
    ];
  }
}

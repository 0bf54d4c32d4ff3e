import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client';

export interface HttpMetrics {
  registry: Registry;
  observe(method: string, route: string, status: number, seconds: number): void;
  observeAttempt(succeeded: boolean): void;
}

export function createMetrics(): HttpMetrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const duration = new Histogram({
    name: 'sluice_http_request_duration_seconds',
    help: 'Time to answer a request of the API, by route and status.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers: [registry],
  });
  const attempts = new Counter({
    name: 'sluice_webhook_attempts_total',
    help: 'Webhook deliveries sent, by how that went.',
    labelNames: ['outcome'],
    registers: [registry],
  });
  const [succeeded, failed] = ['succeeded', 'failed'].map((outcome) => attempts.labels(outcome));
  type Child = { observe(seconds: number): void };
  const children = new Map<string, Child>();
  return {
    registry,
    observeAttempt: (well) => (well ? succeeded! : failed!).inc(),
    observe(method, route, status, seconds) {
      const key = `${method} ${route} ${status}`;
      let child = children.get(key);
      if (!child) {
        child = duration.labels(method, route, String(status)) as Child;
        children.set(key, child);
      }
      child.observe(seconds);
    },
  };
}

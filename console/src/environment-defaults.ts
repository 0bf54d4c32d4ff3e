// What an environment has unless somebody changes it. The service has the same list, which a test compares: its own comes
// with the schemas, which are larger than all pages together.
export const defaults = {
  replicas: 1,
  drain_s: 10,
  retention: 10,
  auto_rollback: true,
  health_check: { path: null, interval_s: 2, timeout_s: 2, healthy_after: 2, unhealthy_after: 3, start_timeout_s: 60 },
  resources: { memory_mb: 512, cpus: 1 },
  canary: {
    advance: 'auto',
    bake_s: 60,
    steps: [],
    min_requests: 20,
    max_error_rate: 0.05,
    max_client_error_rate: null,
    max_p95_ms: null,
    approval_timeout_s: 86_400,
    warmup_s: 60,
    on_inconclusive: 'promote',
  },
} as const;

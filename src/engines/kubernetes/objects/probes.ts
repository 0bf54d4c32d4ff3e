// A health check as the kubelet's probes. Until an instance is healthy for the first time it is probed every second, because
// people are waiting for the deployment; then as often as the check says.
import type { HealthCheck } from '../../../contract/environments.ts';

const fallback: HealthCheck = {
  path: null,
  interval_s: 2,
  timeout_s: 2,
  healthy_after: 1,
  unhealthy_after: 3,
  start_timeout_s: 60,
};

/** The kubelet restarts what has not started by then; the service gives up before that, and knows why. */
const startMarginS = 60;

export function probesOf(check: HealthCheck | null, port: number): object {
  const { path, interval_s, timeout_s, healthy_after, unhealthy_after, start_timeout_s } = check ?? fallback;
  const how = path === null ? { tcpSocket: { port } } : { httpGet: { path, port, scheme: 'HTTP' } };
  return {
    startupProbe: {
      ...how,
      periodSeconds: 1,
      timeoutSeconds: timeout_s,
      successThreshold: 1,
      failureThreshold: start_timeout_s + startMarginS,
    },
    readinessProbe: {
      ...how,
      periodSeconds: interval_s,
      timeoutSeconds: timeout_s,
      successThreshold: healthy_after,
      failureThreshold: unhealthy_after,
    },
  };
}

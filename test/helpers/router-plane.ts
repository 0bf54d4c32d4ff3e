// What the router tests know of a data plane, and which one they run with.
import type { CertificateSource, EnvironmentRoutes, Share } from '../../src/traffic/data-plane.ts';
import type { Measurement } from '../../src/traffic/measurements.ts';
import type { Certificates } from '../../src/traffic/proxy/tls-listener.ts';

type Plane = 'builtin' | 'haproxy';

export const plane: Plane = process.env.SLUICE_TEST_DATA_PLANE === 'haproxy' ? 'haproxy' : 'builtin';

/** Where the planes differ on purpose; docs/traffic.md has the reasons. */
export const onPlane = <T>(values: Record<Plane, T>): T => values[plane];

export interface TestRouter {
  /** Routes the host to these shares; resolves when that is in force. */
  serve(...shares: Share[]): Promise<void>;
  /** Replaces the whole table; resolves when that is in force. */
  apply(...environments: EnvironmentRoutes[]): Promise<void>;
  /** The requests counted for a revision since the start. */
  counted(revision: number): Promise<Pick<Measurement, 'requests' | 'errors' | 'clientErrors'>>;
  takeMeasurements(): Measurement[];
  /** Its warnings; none with HAProxy, which logs for us and not for people. */
  logged(): Record<string, unknown>[];
  port(): number;
  tlsPort(): number | null;
  stop(drainMs: number): Promise<void>;
}

export interface TestRouterTls {
  certificates: Certificates & CertificateSource & { onChanged: (name: string) => Promise<void> };
  redirect?: { port: number | null } | null;
}

// Who carries the requests. The control plane hands over a routing table and reads measurements back; it does not know
// how requests travel. The built-in proxy is one data plane; a native proxy can become another.
import type { Measurement } from './measure/measurements.ts';
import type { RoutingTable } from './table.ts';

export interface DataPlane {
  /** From now on requests go this way; requests under way end where they are. */
  apply(table: RoutingTable): void;
  /** Counts of every bucket that changed since they were last taken. */
  takeMeasurements(): Measurement[];
  /** Where it listens. */
  port(): number;
  /** Where it listens with TLS; null: nowhere. */
  tlsPort(): number | null;
  /** Takes no new connections; resolves when the requests under way have ended or the time is up. */
  stop(drainMs: number): Promise<void>;
}

// What carries visitors' requests to instances. The control plane hands over a routing table and reads measurements
// back; it does not know how requests travel.
import type { Measurement } from './measure/measurements.ts';
import type { RoutingTable } from './table.ts';

export interface DataPlane {
  /** Routes new requests by this table; requests under way finish at the instances they have. */
  apply(table: RoutingTable): void;
  /** The measurements that changed since this was last called. */
  takeMeasurements(): Measurement[];
  /** Where it listens for plain HTTP. */
  port(): number;
  /** Where it listens for TLS; null: it does not. */
  tlsPort(): number | null;
  /** Accepts no more connections. Resolves when the requests under way have ended, or were cut off after `drainMs`. */
  stop(drainMs: number): Promise<void>;
}

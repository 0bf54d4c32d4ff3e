// The leases this process holds: of deliveries it has claimed and not given back, until their outcome is written.
import type { Lease } from '../queue/claim.ts';

export interface HeldLease extends Lease {
  untilMs: number;
}

export class Leases {
  /** By delivery: the lease of a later claim takes the place of one that was lost. */
  readonly #held = new Map<string, HeldLease>();

  hold(leases: readonly Lease[], untilMs: number): void {
    for (const { id, lease } of leases) this.#held.set(id, { id, lease, untilMs });
  }

  drop(leases: readonly Lease[]): void {
    for (const { id, lease } of leases) if (this.#held.get(id)?.lease === lease) this.#held.delete(id);
  }

  endingBefore(timeMs: number): HeldLease[] {
    return [...this.#held.values()].filter(({ untilMs }) => untilMs < timeMs);
  }
}

// The leases this process holds: of deliveries it has claimed and not given back, until their outcome is written.
import type { Lease } from '../queue/claim.ts';

interface HeldLease extends Lease {
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

  /** Those that are still held. */
  extend(leases: readonly Lease[], untilMs: number): void {
    for (const { id, lease } of leases) {
      const held = this.#held.get(id);
      if (held?.lease === lease) held.untilMs = untilMs;
    }
  }

  endingBefore(timeMs: number): Lease[] {
    return [...this.#held.values()].filter(({ untilMs }) => untilMs < timeMs);
  }
}

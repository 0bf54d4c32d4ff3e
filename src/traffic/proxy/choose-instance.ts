// Which instance is asked next: one of the backend that the visitor belongs to, or, where none of those can answer, one
// of the other.
import { pickCandidate } from '../balance.ts';
import type { Instance } from './instance.ts';
import type { Backend } from './route-table.ts';

function pickFrom(backend: Backend, nowMs: number, tried: readonly Instance[]): Instance | null {
  const { instances } = backend;
  if (instances.length === 1 && tried.length === 0 && instances[0]!.ejectedUntil <= nowMs) return instances[0]!;
  const index = pickCandidate(instances, backend.turn, nowMs, tried);
  if (index === -1) return null;
  backend.turn = index + 1; // from the picked one on, so that a skipped instance does not double its neighbour's share
  return instances[index]!;
}

/** Null where every instance was tried. An instance that is in both backends is picked as one of the wanted. */
export function chooseInstance(
  wanted: Backend,
  other: Backend | null,
  nowMs: number,
  tried: readonly Instance[],
): Instance | null {
  return (
    pickFrom(wanted, nowMs, tried) ??
    (other && pickFrom(other, nowMs, tried)) ??
    // All that are left are ejected: try one of those rather than none.
    pickFrom(wanted, Number.POSITIVE_INFINITY, tried) ??
    (other && pickFrom(other, Number.POSITIVE_INFINITY, tried))
  );
}

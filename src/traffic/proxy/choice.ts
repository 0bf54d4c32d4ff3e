// Which instance is tried next: one of the side that the visitor belongs to, and where none of that side can answer, one
// of the other.
import { pickCandidate } from '../pick.ts';
import type { Instance, Side } from './instances.ts';

function fromSide(side: Side, nowMs: number, tried: readonly Instance[]): Instance | null {
  const { instances } = side;
  if (instances.length === 1 && tried.length === 0 && instances[0]!.ejectedUntil <= nowMs) return instances[0]!;
  const place = pickCandidate(instances, side.turn, nowMs, tried);
  if (place === -1) return null;
  side.turn = place + 1; // so that an instance that is passed over does not double its neighbour's share
  return instances[place]!;
}

export function choose(wanted: Side, other: Side | null, nowMs: number, tried: readonly Instance[]): Instance | null {
  return (
    fromSide(wanted, nowMs, tried) ??
    (other && fromSide(other, nowMs, tried)) ??
    // None is known to be well: rather one that failed a moment ago than none.
    fromSide(wanted, Number.POSITIVE_INFINITY, tried) ??
    (other && fromSide(other, Number.POSITIVE_INFINITY, tried))
  );
}

// Which instance is asked next: one of the side that the visitor belongs to, and where none of that side can answer, one
// of the other. A request that a side should have answered and could not is counted as an error of that side.
import { pickCandidate } from '../pick.ts';
import type { Instance, Side, Way } from './instances.ts';

export interface Choice {
  side: Side;
  instance: Instance;
}

function fromSide(side: Side, nowMs: number, tried: readonly Instance[]): Choice | null {
  const { instances } = side;
  if (instances.length === 1 && tried.length === 0 && instances[0]!.ejectedUntil <= nowMs) {
    return { side, instance: instances[0]! };
  }
  const place = pickCandidate(instances, side.turn, nowMs, tried);
  if (place === -1) return null;
  side.turn = place + 1; // the next one is asked next, so that one that is passed over does not double its neighbour
  return { side, instance: instances[place]! };
}

export function choose(way: Way, wanted: Side, nowMs: number, tried: readonly Instance[]): Choice | null {
  const other = wanted === way.stable ? way.canary : way.stable;
  return (
    fromSide(wanted, nowMs, tried) ??
    (other && fromSide(other, nowMs, tried)) ??
    // Nobody is known to be well: rather one that failed a moment ago than none.
    fromSide(wanted, Number.POSITIVE_INFINITY, tried) ??
    (other && fromSide(other, Number.POSITIVE_INFINITY, tried))
  );
}

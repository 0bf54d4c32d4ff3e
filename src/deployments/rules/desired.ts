// How many instances of each revision should run, and which share of the requests each should get. No I/O.
import type { DeploymentState, Strategy } from '../../contract/deployments.ts';

export interface Situation {
  /** null: no deployment in progress. */
  state: DeploymentState | null;
  strategy: Strategy;
  hasPrevious: boolean;
  /** The share of the canary's current step, or of its first. */
  percent: number;
  replicas: number;
  freshHealthy: number;
  freshExisting: number;
  previousHealthy: number;
}

export interface Desired {
  fresh: number;
  previous: number;
  /** Share of requests that the new revision gets; the rest goes to the previous one. */
  freshPercent: number;
}

export function desiredOf(s: Situation): Desired {
  const previous = s.hasPrevious ? s.replicas : 0;
  switch (s.state) {
    case null:
    case 'queued':
    case 'preparing':
    case 'failed':
    case 'canceled':
      return { fresh: 0, previous, freshPercent: 0 };
    case 'starting':
      return { fresh: atStart(s), previous, freshPercent: 0 };
    case 'canary':
      return { fresh: canaryInstances(s), previous, freshPercent: s.percent };
    case 'promoting':
      return promoting(s, previous);
    case 'aborting': {
      // The drained instances of the previous revision come back before those of the new one go.
      const restored = s.previousHealthy >= previous;
      const serves = !s.hasPrevious || s.previousHealthy > 0;
      return { fresh: restored ? 0 : s.freshExisting, previous, freshPercent: serves ? 0 : 100 };
    }
    case 'succeeded':
      return { fresh: s.replicas, previous: 0, freshPercent: 100 };
  }
}

function atStart(s: Situation): number {
  if (!s.hasPrevious || s.strategy === 'blue_green') return s.replicas;
  return s.strategy === 'canary' ? canaryInstances(s) : 1;
}

/** As many instances as the share asks for: one at least, and never all at once. */
const canaryInstances = ({ replicas, percent }: Situation): number =>
  Math.max(1, Math.ceil((replicas * percent) / 100));

function promoting(s: Situation, previous: number): Desired {
  const healthy = Math.min(s.freshHealthy, s.replicas);
  const complete = healthy >= s.replicas;
  if (complete) return { fresh: s.replicas, previous: 0, freshPercent: 100 };
  if (!s.hasPrevious) return { fresh: s.replicas, previous: 0, freshPercent: healthy > 0 ? 100 : 0 };
  // The previous revision may have left already, and more replicas were asked for after that.
  const shareOf = (percent: number) => (s.previousHealthy === 0 && healthy > 0 ? 100 : percent);
  if (s.strategy === 'rolling') {
    // One more than are healthy. As many old ones leave as new ones have become healthy, so never fewer serve.
    return {
      fresh: Math.min(s.replicas, healthy + 1),
      previous: previous - healthy,
      freshPercent: shareOf(Math.round((100 * healthy) / s.replicas)),
    };
  }
  return { fresh: s.replicas, previous, freshPercent: shareOf(s.strategy === 'canary' ? s.percent : 0) };
}

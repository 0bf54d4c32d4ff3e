type Tone = 'good' | 'flow' | 'warn' | 'bad' | 'calm';

const tones: Record<string, Tone> = {
  succeeded: 'good',
  active: 'good',
  enabled: 'good',
  resolved: 'good',
  healthy: 'good',
  available: 'good',
  canary: 'flow',
  promoting: 'flow',
  preparing: 'flow',
  starting: 'flow',
  queued: 'flow',
  created: 'flow',
  baking: 'flow',
  issuing: 'flow',
  awaiting_approval: 'warn',
  paused: 'warn',
  pending: 'warn',
  warning: 'warn',
  locked: 'warn',
  degraded: 'warn',
  down: 'bad',
  unhealthy: 'bad',
  ended: 'bad',
  aborting: 'bad',
  failed: 'bad',
  firing: 'bad',
  critical: 'bad',
  disabled: 'bad',
  rolled_back: 'bad',
  revoked: 'bad',
  expired: 'bad',
  unavailable: 'bad',
};

export const labelOf = (state: string): string => state.replaceAll('_', ' ');

/** A state with a mark. The tone shows in the shape of the mark as well as in its colour. */
export function Badge({ state, children }: { state: string; children?: string }) {
  return <span className={`badge ${tones[state] ?? 'calm'}`}>{children ?? labelOf(state)}</span>;
}

// What a run came to, in one line.
import { excuseOf } from './checks.ts';
import type { Faults } from './faults.ts';
import type { Ledger } from './ledger.ts';
import type { Facts } from './records.ts';
import type { Visitors } from './visitors.ts';

export interface Outcome {
  ledger: Ledger;
  faults: Pick<Faults, 'records' | 'skipped'>;
  visitors: Pick<Visitors, 'failed' | 'visits' | 'longestMs'>;
  /** What was waited for and did not happen. */
  trouble: string[];
  facts: Facts;
}

function tally(values: string[]): string {
  const counts: Record<string, number> = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  const listed = Object.entries(counts).sort(([a], [b]) => a.localeCompare(b));
  return listed.map(([value, count]) => `${count} ${value}`).join(', ') || 'none';
}

export function closingLine(
  outcome: Outcome & { name: string; minutes: number; seed: number; violations: number },
): string {
  const { ledger, faults, visitors, facts, name, minutes, seed, violations } = outcome;
  const kinds = faults.records.map(({ kind }) => kind);
  const kills = kinds.filter((kind) => kind.startsWith('kill'));
  const failures = visitors.failed.map((visit) => excuseOf(visit, faults.records) ?? 'for no reason');
  const ends = facts.deployments.map(({ state, failure_code }) => (failure_code ? `${state}: ${failure_code}` : state));
  const arrivals = facts.receivers.reduce((sum, receiver) => sum + receiver.arrivals.length, 0);
  return [
    `chaos: ${name}, seed ${seed}, ${minutes} minutes`,
    `${kills.length} kills and ${kinds.length - kills.length} other faults (${tally(kinds)})`,
    `${visitors.visits} visits, ${failures.length} failed (${tally(failures)}), the longest took ${visitors.longestMs} ms`,
    `${ledger.acknowledged.length} acknowledged POSTs`,
    `${facts.deployments.length} deployments (${tally(ends)})`,
    `${facts.events.length} events, ${arrivals} arrivals at ${facts.receivers.length} receivers`,
    `${facts.instanceRows.length} instances, ${violations} violations`,
  ].join('; ');
}

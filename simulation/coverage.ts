// Which states and transitions a run has reached. What no seed of many reaches is not tested by any of them.
import type { Commit } from './facts.ts';

/** What many seeds together have to reach. */
export const expected = [
  ...['queued → preparing', 'queued → canceled', 'preparing → starting', 'preparing → failed', 'preparing → aborting'],
  ...['starting → canary', 'starting → promoting', 'starting → failed', 'starting → aborting', 'canary → promoting'],
  ...['canary → aborting', 'promoting → succeeded', 'promoting → aborting', 'aborting → failed', 'aborting → canceled'],
  ...['undone by analysis', 'undone by alert', 'undone by deadline', 'undone by abort'],
  ...['canary paused', 'canary awaiting_approval', 'canary at a second step', 'an instance of a canary was replaced'],
  ...['verdict good', 'verdict bad', 'verdict inconclusive', 'only the canary had errors'],
  ...['an abort at its deadline', 'a revision went on serving because its predecessor could not'],
  ...['instance starting → healthy', 'instance healthy → unhealthy', 'instance unhealthy → healthy'],
  ...['instance healthy → draining', 'instance starting → draining', 'instance unhealthy → draining'],
  ...[
    'an alert fired',
    'an alert was resolved',
    'a port was used again',
    'a lease was lost when it was to be confirmed',
  ],
];

const sentences: [RegExp, string][] = [
  [/^The canary is good/, 'verdict good'],
  [/^The canary is worse/, 'verdict bad'],
  [/Too few requests to tell/, 'verdict inconclusive'],
  [/only the canary had errors/, 'only the canary had errors'],
];

export class Coverage {
  readonly counts: Record<string, number> = {};
  readonly #told = new Set<string>();
  readonly #ports = new Set<number>();

  reach(name: string): void {
    this.counts[name] = (this.counts[name] ?? 0) + 1;
  }

  note({ before, after }: Commit): void {
    if (before.deployment !== after.deployment) this.#noteDeployments(before, after);
    if (before.instance !== after.instance) this.#noteInstances(before, after);
    if (before.alert !== after.alert) this.#noteAlerts(before, after);
    if (before.deployment_timeline !== after.deployment_timeline) this.#noteSentences(after);
    if (before.instance_port !== after.instance_port) {
      const known = new Map(before.instance_port.map(({ port, instance_id }) => [port, instance_id]));
      for (const { port, instance_id } of after.instance_port) {
        const other = known.get(port);
        if (other === undefined ? this.#ports.has(port) : other !== instance_id) this.reach('a port was used again');
        this.#ports.add(port);
      }
    }
  }

  #noteDeployments(before: Commit['before'], after: Commit['after']): void {
    const known = new Map(before.deployment.map((row) => [row.id, row]));
    for (const row of after.deployment) {
      const earlier = known.get(row.id);
      if (!earlier || earlier.version === row.version) continue;
      if (earlier.state !== row.state) this.reach(`${earlier.state} → ${row.state}`);
      if (row.state === 'aborting' && earlier.state !== 'aborting') this.reach(`undone by ${row.cause}`);
      if (row.canary_phase !== earlier.canary_phase && row.canary_phase !== null)
        this.reach(`canary ${row.canary_phase}`);
      if (row.canary_step > Math.max(1, earlier.canary_step)) this.reach('canary at a second step');
      if (row.replaced_instance !== earlier.replaced_instance) this.reach('an instance of a canary was replaced');
      const isOver = earlier.state === 'aborting' && row.finished_at !== null;
      if (isOver && (earlier.deadline_at ?? 0) <= row.finished_at!) this.reach('an abort at its deadline');
      const target = after.revision.find(
        ({ project_id, environment, number }) =>
          project_id === row.project_id && environment === row.environment && number === row.revision,
      );
      if (isOver && target?.state === 'active')
        this.reach('a revision went on serving because its predecessor could not');
    }
  }

  #noteInstances(before: Commit['before'], after: Commit['after']): void {
    const known = new Map(before.instance.map(({ id, state }) => [id, state]));
    for (const { id, state } of after.instance) {
      const earlier = known.get(id);
      if (earlier !== undefined && earlier !== state) this.reach(`instance ${earlier} → ${state}`);
    }
  }

  #noteAlerts(before: Commit['before'], after: Commit['after']): void {
    const known = new Map(before.alert.map(({ id, resolved_at }) => [id, resolved_at]));
    for (const { id, resolved_at } of after.alert) {
      if (!known.has(id)) this.reach('an alert fired');
      else if (resolved_at !== null && known.get(id) === null) this.reach('an alert was resolved');
    }
  }

  #noteSentences({ deployment_timeline }: Commit['after']): void {
    for (const { deployment_id, seq, message } of deployment_timeline) {
      const key = `${deployment_id} ${seq}`;
      if (this.#told.has(key)) continue;
      this.#told.add(key);
      for (const [sentence, name] of sentences) if (sentence.test(message)) this.reach(name);
    }
  }
}

/** The table, and what is missing in it. */
export function readCoverage(all: readonly Record<string, number>[]): { lines: string[]; missing: string[] } {
  const count = (name: string) => all.reduce((sum, one) => sum + (one[name] ?? 0), 0);
  const names = [...expected, ...new Set(all.flatMap((one) => Object.keys(one)))];
  const lines = [...new Set(names)].map((name) => `${String(count(name)).padStart(8)}  ${name}`);
  return { lines, missing: expected.filter((name) => count(name) === 0) };
}

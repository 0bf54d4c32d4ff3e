// Watching a deployment to its end: drawn in place on a terminal, a line for each thing that happens elsewhere. Below
// that, pure: the lines that stay, those that are drawn again, and the summary at the end.
import { clearInterval, setInterval } from 'node:timers';
import type { Sluice } from '../../client/index.ts';
import type { Deployment } from '../../contract/deployments.ts';
import type { CommandContext } from '../frame/command.ts';
import { exit } from '../io.ts';
import { frameAt, Live } from '../terminal/live.ts';
import {
  colourOf,
  columnsOf,
  count,
  milliseconds,
  type Paint,
  painter,
  percent,
  span,
  timeOfDay,
} from '../terminal/output.ts';
import { type Cell, clean, layOut } from '../terminal/table.ts';

const redrawMs = 100;
const pollMs = 500;
const shownLogLines = 10;

/** Exit code 0 only where the deployment succeeded. Ctrl-C ends the watching, not the deployment. */
export async function watch(context: CommandContext, sluice: Sluice, first: Deployment): Promise<number> {
  const view = context.out.isLive ? liveView(context, first) : plainView(context);
  const { project_id, id } = first;
  let ended: Deployment;
  try {
    const options = { signal: context.signal, intervalMs: pollMs, onChange: view.show };
    ended = await sluice.waitFor(project_id, id, options);
  } catch (error) {
    if (!context.signal.aborted) throw error;
    view.end();
    context.out.note(`The deployment goes on. Watch it again: sluice deployments watch ${id} --project ${project_id}`);
    return exit.interrupted;
  } finally {
    view.end();
  }
  return conclude(context, sluice, ended);
}

async function conclude({ out }: CommandContext, sluice: Sluice, ended: Deployment): Promise<number> {
  const succeeded = ended.state === 'succeeded';
  const address = succeeded && !out.json ? await addressOf(sluice, ended) : null;
  out.result(ended, () => {
    for (const line of summaryLines(ended, address, out.paint)) out.line(line);
  });
  return succeeded ? exit.done : exit.failed;
}

/** A token that may deploy need not be one that may read environments. */
const addressOf = (sluice: Sluice, { project_id, environment }: Deployment): Promise<string | null> =>
  sluice.environments.get(project_id, environment).then(
    ({ url }) => url,
    () => null,
  );

interface View {
  show(deployment: Deployment): void;
  end(): void;
}

function plainView({ io, out }: CommandContext): View {
  const paint = painter(io.env, io.stderr);
  let shown = 0;
  return {
    show({ timeline }) {
      if (!out.json) for (const entry of timeline.slice(shown)) out.note(timelineLine(entry, paint));
      shown = timeline.length;
    },
    end() {},
  };
}

function liveView({ io }: CommandContext, first: Deployment): View {
  const live = new Live(io.stderr);
  const paint = painter(io.env, io.stderr);
  let latest = first;
  let shown = 0;
  const draw = () => {
    const above = latest.timeline.slice(shown).map((entry) => timelineLine(entry, paint));
    shown = latest.timeline.length;
    live.draw(liveLines(latest, { now: io.now(), columns: columnsOf(io.stderr), paint }), above);
  };
  const timer = setInterval(draw, redrawMs);
  return {
    show(deployment) {
      latest = deployment;
      draw();
    },
    end() {
      clearInterval(timer);
      live.end();
    },
  };
}

interface Scene {
  now: number;
  columns: number;
  paint: Paint;
}

type Entry = Deployment['timeline'][number];

export const timelineLine = ({ at, state, message }: Entry, paint: Paint): string =>
  `${paint('dim', timeOfDay(at))}  ${paint(colourOf(state), state.padEnd(9))}  ${clean(message)}`;

/** The lines that are redrawn until the deployment has ended. */
export function liveLines(deployment: Deployment, scene: Scene): string[] {
  const { state, revision, image, started_at, created_at, canary } = deployment;
  const { now, paint } = scene;
  const running = span(now - Date.parse(started_at ?? created_at));
  const doing = `${paint('cyan', frameAt(now))} ${paint('bold', state)} ${paint('dim', running)}`;
  const head = `${doing}  ${revision}  ${clean(image)}`;
  return canary === null ? [head] : [head, ...canaryLines(deployment, canary, scene)];
}

type Canary = NonNullable<Deployment['canary']>;

function canaryLines(deployment: Deployment, canary: Canary, scene: Scene): string[] {
  const stable = deployment.previous_revision ?? '-';
  const room = Math.min(40, scene.columns - stable.length - deployment.revision.length - 20);
  const bar = splitBar(canary.percent, Math.max(8, room), scene.paint);
  return [
    `  ${phaseOf(canary, scene.now)}`,
    `  ${stable} ${100 - canary.percent} % ${bar} ${canary.percent} % ${deployment.revision}`,
    ...metricLines(stable, deployment.revision, canary, scene),
  ];
}

/** The stable side first; each side that has traffic gets at least one cell. */
export function splitBar(canaryPercent: number, width: number, paint: Paint): string {
  const cells = Math.min(width - 1, Math.max(1, Math.round((canaryPercent / 100) * width)));
  return paint('green', '█'.repeat(width - cells)) + paint('yellow', '▒'.repeat(cells));
}

function phaseOf({ phase, step, percent: share, until }: Canary, now: number): string {
  const at = `step ${step}, ${share} %`;
  if (phase === 'paused') return `${at}: paused (sluice resume, sluice promote or sluice abort)`;
  if (phase === 'awaiting_approval') return `${at}: waits for sluice promote or sluice abort`;
  const left = until === null ? 0 : Date.parse(until) - now;
  return `${at}: baking, ${left > 0 ? `${span(left)} left` : 'waiting for requests'}`;
}

function metricLines(stable: string, revision: string, canary: Canary, { columns, paint }: Scene): string[] {
  const dim = (text: string) => paint('dim', text);
  const rate = (field: 'error_rate' | 'client_error_rate', side: Canary['stable']): Cell => {
    const worse = (side[field] ?? 0) > (canary.stable[field] ?? 0);
    return { text: percent(side[field]), ...(worse && { paint: (text: string) => paint('red', text) }) };
  };
  const row = (name: string, side: Canary['stable']): Cell[] => [
    { text: `  ${name}` },
    { text: count(side.requests) },
    rate('error_rate', side),
    rate('client_error_rate', side),
    { text: milliseconds(side.p95_ms) },
  ];
  const rows = [
    ['', 'requests', 'errors', '4xx', 'p95'].map((text): Cell => ({ text, paint: dim })),
    row(`stable ${stable}`, canary.stable),
    row(`canary ${revision}`, canary.canary),
  ];
  return [...layOut(rows, { columns, right: new Set([1, 2, 3, 4]) }), `  ${verdictOf(canary, paint)}`];
}

const verdictColours = { good: 'green', bad: 'red', inconclusive: 'yellow' } as const;

function verdictOf({ analysis: { verdict, evidence } }: Canary, paint: Paint): string {
  // More 4xx are only worse where they are judged, which shows in the verdict.
  const odds = Math.max(evidence.errors, evidence.latency, verdict === 'bad' ? evidence.client_errors : 0);
  return `${paint(verdictColours[verdict], verdict)}, odds ${odds >= 1e6 ? 'over 1,000,000' : count(Math.floor(odds))} to 1 that it is worse`;
}

/** The lines that stay once the deployment has ended. */
export function summaryLines(deployment: Deployment, address: string | null, paint: Paint): string[] {
  const { state, revision, environment, failure, previous_revision, started_at, created_at, finished_at } = deployment;
  const took =
    finished_at === null ? '' : `, after ${span(Date.parse(finished_at) - Date.parse(started_at ?? created_at))}`;
  if (state === 'succeeded') {
    const at = address === null ? [] : [`  ${address}`];
    return [`${paint('green', '✔ succeeded')}: ${revision} serves all of ${environment}${took}`, ...at];
  }
  const serves = previous_revision === null ? 'nothing serves' : `${previous_revision} still serves`;
  const why = failure ? ` ${failure.code}: ${clean(failure.message)}` : '';
  // What to read first stands last, where the eye is: the reason, not the lines that led to it.
  const log = failure?.log_tail ?? [];
  const tail = log.slice(-shownLogLines).map((text) => `  ${paint('dim', '│')} ${clean(text)}`);
  const more = log.length > 0 ? `; its log: sluice logs ${revision}` : '';
  return [...tail, `${paint('red', `✖ ${state}`)}:${why}`, `  ${serves} ${environment}${took}${more}`];
}

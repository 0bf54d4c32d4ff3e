// How a rollout is told, without I/O: the stages it went through with how long each took, what its present stage waits
// for and how the canary compares, and at the end what happened, who serves now, and what to do next.
//
//   image  →  start  →  10 %  →  50 %  →  100 %          each with what was found out in it
//                        └──────────────→  undo
import type { Deployment, FailureCode } from '../../contract/deployments.ts';
import type { Environment } from '../../contract/environments.ts';
import type { Instance } from '../../contract/instances.ts';
import { frameAt } from '../terminal/live.ts';
import {
  clock,
  colourOf,
  count,
  milliseconds,
  type Paint,
  percent,
  plural,
  span,
  spanInTenths,
  timeOfDay,
} from '../terminal/output.ts';
import { type Cell, clean, fold, layOut, pad, wrap } from '../terminal/table.ts';

const shownLogLines = 10;
/** A stage that only waited its turn is worth a line if somebody noticed. */
const noticedMs = 1000;
const indent = 12;

type Entry = Deployment['timeline'][number];
type State = Entry['state'];
type Canary = NonNullable<Deployment['canary']>;

export interface Stage {
  state: State;
  label: string;
  from: number;
  /** null: it is the present one. */
  until: number | null;
  /** What the rollout went on to. */
  next: State | null;
  /** What was found out in it. */
  remarks: string[];
}

const labels: Partial<Record<State, string>> = {
  queued: 'queue',
  preparing: 'image',
  starting: 'start',
  canary: 'canary',
  promoting: '100 %',
  aborting: 'undo',
};

const isEnd = (state: State): boolean => labels[state] === undefined;

const stepBegins = /^(\d{1,2} %) of requests go to the new revision\.\s*/;
/** What the label of the stage says already. */
const openings: Partial<Record<State, RegExp>> = {
  queued: /^Accepted\./g,
  preparing: /^Pulling the image\./g,
  starting: /^The image is \S+\.(?= )| Starting instances\.$/g,
  promoting: /^Instances are healthy\.| ?Moving all traffic\.$/g,
};

/** A timeline as stages. Each step of a canary is one, and ends with the sentence that the next one begins with. */
export function stagesOf(timeline: readonly Entry[]): Stage[] {
  const stages: Stage[] = [];
  for (const { at, state, message } of timeline) {
    const now = Date.parse(at);
    const present = stages.at(-1);
    const step = state === 'canary' ? stepBegins.exec(message) : null;
    const entered = present?.state !== state;
    if (!entered && step === null) {
      present.remarks.push(message);
      continue;
    }
    const found = (step ? message.slice(step[0].length) : message.replaceAll(openings[state] ?? '', '')).trim();
    if (present) {
      Object.assign(present, { until: now, next: state });
      // The reason for an end, or for going back, stands at the end of the story.
      if (present.state === 'canary' && found !== '' && !isEnd(state) && state !== 'aborting')
        present.remarks.push(found);
    }
    if (isEnd(state)) {
      if (present?.state === 'aborting') present.remarks.push(message);
      continue;
    }
    const isNews = state === 'queued' || state === 'preparing' || state === 'starting';
    const remarks = isNews && found !== '' ? [found] : [];
    stages.push({ state, label: step?.[1] ?? labels[state]!, from: now, until: null, next: null, remarks });
  }
  return stages;
}

export interface Scene {
  now: number;
  columns: number;
  paint: Paint;
  /** Of the environment, where the token may read it. */
  policy: Environment['canary'] | null;
  /** Of the revision that is rolled out. */
  instances: readonly Instance[] | null;
}

/** Where the message of a timeline line begins. */
export const timelineIndent = 21;

export const timelineLine = ({ at, state, message }: Entry, paint: Paint): string =>
  `${paint('dim', timeOfDay(at))}  ${paint(colourOf(state), state.padEnd(9))}  ${clean(message)}`;

/** The lines of a stage that is over. */
export function pastLines(stage: Stage, deployment: Deployment, scene: Scene): string[] {
  const took = stage.until! - stage.from;
  if (stage.state === 'queued' && took < noticedMs) return [];
  const isWrong = stage.next === 'aborting' || stage.next === 'failed';
  const what = paintIf(
    isWrong && stage.state !== 'aborting',
    scene.paint,
    outcomeOf(stage, deployment, spanInTenths(took), scene),
  );
  return linesOf(stage.label, what, stage.state === 'aborting' ? [] : stage.remarks, scene);
}

const paintIf = (isWrong: boolean, paint: Paint, text: string): string => (isWrong ? paint('red', text) : text);

function outcomeOf({ state, next, remarks }: Stage, { digest, local }: Deployment, took: string, scene: Scene): string {
  if (next === 'canceled') return `canceled after ${took}`;
  switch (state) {
    case 'queued':
      return `waited ${took}`;
    case 'preparing':
      if (digest === null) return `not there after ${took}`;
      return local ? `the one on this engine, ${brief(digest)}` : `ready after ${took}, ${brief(digest)}`;
    case 'starting':
      return next === 'failed' || next === 'aborting'
        ? `${healthyOf(scene.instances) ?? 'not healthy'} after ${took}`
        : `healthy after ${took}`;
    case 'aborting':
      return `${(remarks.at(-1) ?? 'Done.').replace(/\.$/, '')}, after ${took}`;
    default:
      if (next === 'aborting') return `undone after ${took}`;
      return state === 'canary' ? `held for ${took}` : `reached after ${took}`;
  }
}

/** The beginning of a digest is enough where the whole of it is elsewhere. */
export const brief = (text: string): string => text.replaceAll(/(sha256:[0-9a-f]{12})[0-9a-f]+\.?/g, '$1…');

function healthyOf(instances: readonly Instance[] | null): string | null {
  const running = instances?.filter(({ state }) => state !== 'ended' && state !== 'draining') ?? [];
  if (running.length === 0) return null;
  return `${running.filter(({ state }) => state === 'healthy').length} of ${running.length} healthy`;
}

/** The lines of the present stage, which are drawn again and again. */
export function presentLines(stage: Stage, deployment: Deployment, scene: Scene): string[] {
  const { canary } = deployment;
  const lines =
    stage.state === 'canary' && canary !== null
      ? canaryLines(stage, deployment, canary, scene)
      : linesOf(
          stage.label,
          waitingFor(stage, deployment, scene),
          [...stage.remarks, ...checkRemarks(stage, scene)],
          scene,
        );
  const commands = stage.state === 'canary' ? ['status', 'promote', 'abort'] : ['status', 'abort'];
  const isUndone = stage.state === 'aborting';
  const leave = `  Ctrl-C leaves it running: ${(isUndone ? ['status'] : commands).map((word) => `sluice ${word}`).join(' · ')}`;
  return [...lines, scene.paint('dim', leave)];
}

function waitingFor({ state, from }: Stage, { image, previous_revision, failure }: Deployment, scene: Scene): string {
  const running = span(scene.now - from);
  const what = {
    queued: 'waits for its region',
    preparing: clean(image),
    starting: healthyOf(scene.instances) ?? 'starting instances',
    promoting: [healthyOf(scene.instances), 'moving all traffic'].filter((part) => part !== null).join(', '),
    aborting: `back to ${previous_revision ?? 'nothing'}${failure ? `: ${clean(failure.message)}` : ''}`,
  }[state as string];
  return `${scene.paint('cyan', frameAt(scene.now))} ${what ?? state}, ${running}`;
}

/** Why instances do not get healthy, as their latest checks say. */
function checkRemarks({ state }: Stage, { instances }: Scene): string[] {
  if (state !== 'starting' && state !== 'promoting') return [];
  const failing = (instances ?? []).filter((one) => one.state !== 'draining' && one.last_check?.ok === false);
  return [...new Set(failing.map(({ last_check }) => last_check!.message))].slice(0, 3);
}

function canaryLines(stage: Stage, deployment: Deployment, canary: Canary, scene: Scene): string[] {
  const { paint, policy } = scene;
  const label = `${canary.percent} %`;
  const latest = canary.phase === 'baking' ? [] : stage.remarks.slice(-1);
  return [
    ...linesOf(label, phaseOf(stage, canary, scene), latest, scene),
    ...comparisonLines(deployment, canary, scene),
    ...paragraph(verdictOf(canary, paint), scene),
    ...paragraph(nextOf(deployment, canary, policy), scene).map((line) => paint('dim', line)),
  ];
}

function phaseOf({ from }: Stage, { phase, until }: Canary, { now, columns, paint }: Scene): string {
  if (phase === 'paused') return paint('yellow', 'paused: sluice resume · sluice promote · sluice abort');
  if (phase === 'awaiting_approval') return paint('yellow', 'waits for you: sluice promote · sluice abort');
  const end = until === null ? now : Date.parse(until);
  const width = Math.min(30, columns - indent - 24);
  const bar = timeBar((now - from) / Math.max(1, end - from), width, paint);
  return `${bar} ${end > now ? `${clock(end - now)} left` : 'waiting for requests'}`;
}

/** How much of a step is over. */
export function timeBar(part: number, width: number, paint: Paint): string {
  const cells = Math.round(Math.min(1, Math.max(0, part)) * width);
  return `▕${paint('cyan', '█'.repeat(cells))}${' '.repeat(width - cells)}▏`;
}

function comparisonLines(deployment: Deployment, canary: Canary, { columns, paint }: Scene): string[] {
  const dim = (text: string) => paint('dim', text);
  const rate = (field: 'error_rate' | 'client_error_rate', side: Canary['stable']): Cell => {
    const worse = (side[field] ?? 0) > (canary.stable[field] ?? 0);
    return { text: percent(side[field]), ...(worse && { paint: (text: string) => paint('red', text) }) };
  };
  const row = (revision: string, share: number, side: Canary['stable']): Cell[] => [
    { text: revision },
    { text: `${share} %` },
    { text: count(side.requests) },
    rate('error_rate', side),
    rate('client_error_rate', side),
    { text: milliseconds(side.p95_ms) },
  ];
  const rows = [
    ['', '', 'requests', 'errors', '4xx', 'p95'].map((text): Cell => ({ text, paint: dim })),
    row(deployment.revision, canary.percent, canary.canary),
    row(deployment.previous_revision ?? '-', 100 - canary.percent, canary.stable),
  ];
  const layout = { columns: columns - indent, right: new Set([1, 2, 3, 4, 5]) };
  return layOut(rows, layout).map((line) => ' '.repeat(indent) + line);
}

const verdictColours = { good: 'green', bad: 'red', inconclusive: 'yellow' } as const;

function verdictOf({ analysis: { verdict, reason, evidence } }: Canary, paint: Paint): string {
  // More 4xx are only worse where they are judged, which shows in the verdict.
  const odds = Math.max(evidence.errors, evidence.latency, verdict === 'bad' ? evidence.client_errors : 0);
  const against = odds > 1 ? `${odds >= 1e6 ? 'over 1,000,000' : count(Math.floor(odds))} to 1` : 'nothing';
  const sentence = clean(reason).replace(/^(The canary is \w+|Too few requests to tell)/, (words) =>
    paint(verdictColours[verdict], words),
  );
  return `${sentence} So far ${against} speaks against it; at ${count(Math.ceil(evidence.needed))} to 1 it is undone.`;
}

function nextOf({ canary_percent }: Deployment, { percent: share }: Canary, policy: Scene['policy']): string {
  if (policy === null || canary_percent === null) return '';
  const steps = policy.steps.filter((step) => step > share && step > canary_percent).map((step) => `${step} %`);
  const how =
    policy.advance === 'manual' ? 'with sluice promote' : `${span((policy.warmup_s + policy.bake_s) * 1000)} each`;
  return `next: ${[...steps, '100 %'].join(' → ')}${steps.length > 0 || policy.advance === 'manual' ? `, ${how}` : ''}`;
}

const linesOf = (label: string, what: string, remarks: readonly string[], scene: Scene): string[] => [
  `  ${scene.paint('bold', pad(label, indent - 4))}  ${what}`,
  ...remarks.flatMap((remark) => paragraph(clean(remark), scene)),
];

const paragraph = (text: string, { columns }: Pick<Scene, 'columns'>): string[] =>
  text === '' ? [] : wrap(text, columns - indent - 1).map((line) => ' '.repeat(indent) + line);

/** What to do about a failure, beyond what its message says. */
const advice: Partial<Record<FailureCode, (revision: string, previous: string | null, local: boolean) => string>> = {
  image_not_found: (_revision, _previous, local) =>
    local ? '' : 'Is the name right? A private image needs a login: sluice registries add',
  image_denied: () => 'Add a login: sluice registries add',
  registry_unreachable: () => 'When the registry answers again, deploy again.',
  port_not_listening: () => 'Set the port that it listens on: sluice env set port=N',
  health_check_failed: (revision) => `Is the path right? sluice env show · sluice logs ${revision}`,
  start_timeout: (revision) => `Why is it not ready? sluice logs ${revision}`,
  out_of_memory: () => 'Give it more: sluice env set resources.memory_mb=N',
  crashed: (revision) => `Are its variables right? sluice env show · sluice logs ${revision}`,
  start_failed: (revision) => `Are its settings right? sluice env show · sluice logs ${revision}`,
  analysis_failed: (revision, previous) =>
    `Look closer: sluice logs ${revision} · sluice metrics${previous ? ` · sluice diff ${previous} ${revision}` : ''}`,
  alert_fired: (revision) => `Look closer: sluice alerts · sluice metrics · sluice logs ${revision}`,
  approval_timeout: () => 'To wait longer: sluice env set canary.approval_timeout_s=N',
  region_lost: () => 'Is its engine running? sluice doctor',
};

/** The lines that stay at the end: what happened and why, who serves now, and what to do next. */
export function summaryLines(
  deployment: Deployment,
  environment: Pick<Environment, 'url' | 'active_revision'> | null,
  { paint, columns }: { paint: Paint; columns: number | null },
): string[] {
  const { state, revision, failure, previous_revision, started_at, created_at, finished_at } = deployment;
  const took =
    finished_at === null ? '' : ` after ${span(Date.parse(finished_at) - Date.parse(started_at ?? created_at))}`;
  if (state === 'succeeded') {
    const at = environment === null ? [] : [`  ${environment.url}`];
    return [
      `${paint('green', '✔ succeeded')}: ${revision} serves all of ${deployment.environment}${took && `,${took}`}`,
      ...at,
    ];
  }
  const wasUndone =
    state === 'failed' && stagesOf(deployment.timeline).some(({ state: stage }) => stage === 'aborting');
  const why = failure ? `: ${clean(failure.message)} (${failure.code})` : '';
  const what = `${paint('red', `✖ ${wasUndone ? 'undone' : state}`)}${took}${why}`;
  const serving = environment === null ? previous_revision : environment.active_revision;
  const serves = `${serving ?? 'Nothing'} ${serving === previous_revision && serving !== null ? 'still ' : ''}serves ${deployment.environment}.`;
  const next = failure ? (advice[failure.code]?.(revision, previous_revision, deployment.local) ?? '') : '';
  const log = failure?.log_tail ?? [];
  const more =
    log.length > shownLogLines
      ? [`  ${paint('dim', `${plural(log.length - shownLogLines, 'line')} more: sluice logs ${revision}`)}`]
      : [];
  // What to read first stands last, where the eye is: the reason, not the lines that led to it.
  return [
    ...more,
    ...log.slice(-shownLogLines).map((text) => `  ${paint('dim', '│')} ${clean(text)}`),
    ...fold(what, columns, 2),
    `  ${serves}`,
    ...(next === '' ? [] : fold(`  ${next}`, columns, 2)),
  ];
}

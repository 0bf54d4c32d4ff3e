// The life of a deployment, without I/O.
//
//   queued → preparing → starting → canary → promoting → succeeded
//                        starting → promoting              not a canary, or nothing is live yet
//   queued → canceled
//   preparing | starting → failed | aborting
//   canary | promoting → aborting → failed | canceled      abort, analysis, alert, deadline
//
// decide() is called with the latest observation in every reconcile pass, and returns at most one step. It is total:
// every pair of a state and an observation has an answer, and null ("wait") is one. Every state but the final ones has
// a deadline. The steps themselves come last: the rules decide on them, and so do people who promote, pause, resume or
// abort.
import type { CanaryPhase, DeploymentState, FailureCode, RollbackCause, Strategy } from '../../contract/deployments.ts';
import type { CanaryPolicy } from '../../contract/environments.ts';
import { imageIdOf } from '../../contract/references.ts';
import { type Analysis, failedAlone, judge, type Measured } from './analysis.ts';

export interface Rollout {
  state: DeploymentState;
  strategy: Strategy;
  /** Whether another revision serves already. */
  hasPrevious: boolean;
  /** The shares a canary goes through, rising. */
  percents: readonly number[];
  /** Which of them it is at, from 1; 0 before. */
  step: number;
  phase: CanaryPhase | null;
  stepUntil: number | null;
  /** The instance of the canary that was replaced; null: none was. */
  replaced: string | null;
  deadlineAt: number;
  cause: RollbackCause | null;
}

export interface Failure {
  code: FailureCode;
  message: string;
}

export interface Policy {
  canary: CanaryPolicy;
  autoRollback: boolean;
  startTimeoutS: number;
}

/** What decide() needs in addition. */
export interface RolloutPolicy extends Policy {
  /** How long pulling the image may take in all. */
  pullTimeoutS: number;
}

export interface Step {
  to: DeploymentState;
  message: string;
  deadlineAt: number | null;
  digest?: string;
  /** The port of the revision, if its image decides it. */
  port?: number;
  canary?: { phase: CanaryPhase; step: number; until: number | null };
  /** A step of the canary begins: it is judged by requests from now on. */
  begins?: true;
  /** The instance of the canary that is replaced. */
  replaces?: string;
  /** It ends, and what it deployed goes on serving, because nothing else can. */
  goesOnServing?: true;
  failure?: Failure;
  cause?: RollbackCause;
}

export interface Observed {
  regionAvailable: boolean;
  /** The outcome of the pull; trouble: it failed and is retried; null: not known yet. */
  image: { digest: string; port?: number } | Failure | { trouble: Failure } | null;
  /** The latest message of the timeline; null where it does not matter. */
  lastMessage: string | null;
  /** The timeline has no message of this state yet, except that it began. */
  isUnreported: boolean;
  /** Instances of the target revision that should run in this state, are healthy, and exist; its share of requests. */
  target: { wanted: number; healthy: number; existing: number; percent: number };
  previous: { wanted: number; healthy: number };
  /** A router does not have the latest routing table, which exists since then; null: all have it. */
  routersBehind: { since: number } | null;
  /** Why instances of the target revision do not stay up, or do not pass their health check. */
  trouble: Failure | null;
  /** Since the canary's step began; nothing in other states. */
  traffic: Measured;
  /** An alert that fired since the canary began and ends it; measured: by the router, like the analysis. */
  alert: { message: string; measured: boolean } | null;
}

const minuteMs = 60_000;
export const queuedForMs = 15 * minuteMs;
/** How long a step waits for enough requests after its bake. */
const bakeExtraMs = 30 * minuteMs;
const promotingExtraMs = 5 * minuteMs;
const abortingForMs = 5 * minuteMs;
/** A router that hangs holds up a deployment no longer than this. */
const routersGetMs = 10_000;

export function decide(rollout: Rollout, seen: Observed, policy: RolloutPolicy, nowMs: number): Step | null {
  switch (rollout.state) {
    case 'queued':
      return whenQueued(rollout, seen, policy, nowMs);
    case 'preparing':
      return whenPreparing(rollout, seen, policy, nowMs);
    case 'starting':
      return whenStarting(rollout, seen, policy, nowMs);
    case 'canary':
      return whenCanary(rollout, seen, policy, nowMs);
    case 'promoting':
      return whenPromoting(rollout, seen, policy, nowMs);
    case 'aborting':
      return whenAborting(rollout, seen, nowMs);
    case 'succeeded':
    case 'failed':
    case 'canceled':
      return null;
  }
}

function whenQueued(rollout: Rollout, seen: Observed, policy: RolloutPolicy, nowMs: number): Step | null {
  if (seen.regionAvailable) {
    return { to: 'preparing', message: 'Pulling the image.', deadlineAt: nowMs + policy.pullTimeoutS * 1000 };
  }
  return nowMs >= rollout.deadlineAt ? end('failed', lost) : null;
}

function whenPreparing(rollout: Rollout, seen: Observed, policy: Policy, nowMs: number): Step | null {
  if (seen.image && 'code' in seen.image) return end('failed', seen.image);
  if (seen.image && 'digest' in seen.image) {
    const { digest, port } = seen.image;
    const exposed = port === undefined ? '' : ` It exposes port ${port}, and the environment sets none: that is used.`;
    return {
      to: 'starting',
      message: `The image is ${imageIdOf(digest) ?? digest}.${exposed} Starting instances.`,
      digest,
      ...(port !== undefined && { port }),
      deadlineAt: nowMs + policy.startTimeoutS * 1000,
    };
  }
  const trouble = seen.image && 'trouble' in seen.image ? seen.image.trouble : null;
  if (nowMs >= rollout.deadlineAt) {
    return end('failed', (seen.regionAvailable && trouble) || late(seen, 'The image was not pulled in time.'));
  }
  if (!trouble) return null;
  const message = `${trouble.message} Trying again.`;
  return message === seen.lastMessage ? null : { to: 'preparing', message, deadlineAt: rollout.deadlineAt };
}

function whenStarting(rollout: Rollout, seen: Observed, policy: Policy, nowMs: number): Step | null {
  if (seen.target.healthy >= seen.target.wanted && seen.target.wanted > 0) {
    return rollout.strategy === 'canary' && rollout.hasPrevious
      ? beginStep(rollout, 1, policy, nowMs)
      : promote(policy, nowMs, 'Instances are healthy.');
  }
  const fatal = fatalOf(seen);
  if (fatal) return end('failed', fatal);
  if (nowMs < rollout.deadlineAt) return report(rollout, seen);
  if (!seen.regionAvailable) return end('failed', lost);
  const timedOut: Failure = {
    code: 'start_timeout',
    message: `No healthy instance within ${policy.startTimeoutS} s.`,
  };
  return end('failed', seen.trouble ?? timedOut);
}

/** Failures that more time would not resolve: the deployment fails without waiting for its deadline. */
const fatal: readonly FailureCode[] = ['crashed', 'out_of_memory', 'start_failed'];

const fatalOf = ({ trouble }: Observed): Failure | null => (trouble && fatal.includes(trouble.code) ? trouble : null);

/** Failures that may resolve themselves before the deadline, but that people can act on now. */
const actionable: readonly FailureCode[] = [
  'port_not_listening',
  'unschedulable',
  'quota_exceeded',
  'image_not_found',
  'image_denied',
];

function report({ deadlineAt }: Rollout, { trouble, isUnreported }: Observed): Step | null {
  if (!trouble || !actionable.includes(trouble.code) || !isUnreported) return null;
  return { to: 'starting', message: trouble.message, deadlineAt };
}

function whenCanary(rollout: Rollout, seen: Observed, policy: Policy, nowMs: number): Step | null {
  const fatal = fatalOf(seen);
  if (fatal) return undo('analysis', fatal, nowMs);
  const isLate = nowMs >= rollout.deadlineAt;
  const analysis = judge(seen.traffic, policy.canary, rollout.percents.length, rollout.replaced);
  const alarmed = alertOf(rollout, seen, policy, analysis);
  if (rollout.phase !== 'baking') {
    if (alarmed) return undo('alert', alarmed, nowMs);
    const waited: Failure = { code: 'approval_timeout', message: 'It was not promoted or resumed in time.' };
    return isLate ? undo('deadline', waited, nowMs) : null;
  }
  if (analysis.outlier !== null) return replaceInstance(rollout, analysis, analysis.outlier);
  if (analysis.verdict === 'bad') {
    return policy.autoRollback
      ? undo('analysis', { code: 'analysis_failed', message: analysis.reason }, nowMs)
      : hold(rollout, policy, nowMs, `${analysis.reason} Paused.`);
  }
  if (alarmed) return undo('alert', alarmed, nowMs);
  if (rollout.stepUntil !== null && nowMs < rollout.stepUntil) return null;
  // Without a healthy instance the canary gets no larger share: it waits for one. Promoting waits by itself.
  if (seen.target.healthy === 0 && rollout.step < rollout.percents.length) {
    return isLate ? undo('deadline', late(seen, 'The canary has no healthy instance.'), nowMs) : null;
  }
  if (analysis.verdict === 'good') return goOn(rollout, policy, nowMs, analysis.reason);
  // Where the stable revision gets no requests either, waiting would not help.
  const isQuiet = seen.traffic.stable.requests < Math.max(1, policy.canary.min_requests);
  if (!isQuiet && !isLate) return null;
  if (!isQuiet && !seen.regionAvailable) return undo('deadline', lost, nowMs);
  return settle(rollout, policy, nowMs, analysis.reason, failedAlone(seen.traffic));
}

/** The step is over and nothing speaks against the canary. */
function goOn(rollout: Rollout, policy: Policy, nowMs: number, reason: string): Step {
  if (policy.canary.advance === 'auto') return advance(rollout, policy, nowMs, reason);
  return {
    to: 'canary',
    message: `${reason} Waiting for promote at ${percentAt(rollout)} %.`,
    deadlineAt: nowMs + policy.canary.approval_timeout_s * 1000,
    canary: { phase: 'awaiting_approval', step: rollout.step, until: null },
  };
}

/** The step is over and its requests prove nothing. What failed where stable did not is left to people. */
function settle(rollout: Rollout, policy: Policy, nowMs: number, reason: string, failedAlone: boolean): Step {
  switch (policy.canary.on_inconclusive) {
    case 'promote':
      if (!failedAlone) return goOn(rollout, policy, nowMs, reason);
      return hold(rollout, policy, nowMs, `${reason} Paused, because only the canary had errors.`);
    case 'abort':
      return undo('analysis', { code: 'analysis_failed', message: reason }, nowMs);
    case 'hold':
      return hold(rollout, policy, nowMs, `${reason} Paused.`);
  }
}

/**
 * An alert about what the router measured of the canary rests on the same evidence as the analysis. So it needs as many
 * requests, it ends no canary that is not proved to do worse than stable, and it leaves one alone that the analysis has paused for people
 * to decide on (`auto_rollback` off).
 */
function alertOf(rollout: Rollout, { alert, traffic }: Observed, policy: Policy, analysis: Analysis): Failure | null {
  if (!alert) return null;
  if (alert.measured) {
    if (traffic.canary.requests < policy.canary.min_requests || analysis.isNoWorse) return null;
    if (rollout.phase === 'paused' && !policy.autoRollback) return null;
  }
  return { code: 'alert_fired', message: alert.message };
}

function whenPromoting(rollout: Rollout, seen: Observed, policy: Policy, nowMs: number): Step | null {
  if (seen.target.healthy >= seen.target.wanted && seen.previous.wanted === 0 && seen.target.percent === 100) {
    if (!seen.routersBehind) return { to: 'succeeded', message: 'It serves all traffic.', deadlineAt: null };
    const since = Math.max(seen.routersBehind.since, promotedAt(rollout, policy));
    const isOver = nowMs >= Math.min(since + routersGetMs, rollout.deadlineAt);
    return isOver ? { to: 'succeeded', message: servesNearlyAll, deadlineAt: null } : null;
  }
  const fatal = fatalOf(seen);
  if (fatal) return undo('analysis', fatal, nowMs);
  if (nowMs < rollout.deadlineAt) return null;
  return undo('deadline', late(seen, `Instances were not healthy in time.${because(seen)}`), nowMs);
}

function whenAborting(rollout: Rollout, seen: Observed, nowMs: number): Step | null {
  const restored = !rollout.hasPrevious || seen.previous.healthy >= seen.previous.wanted;
  const to = rollout.cause === 'abort' ? 'canceled' : 'failed';
  const isLate = nowMs >= rollout.deadlineAt;
  if (isLate && rollout.hasPrevious && seen.previous.healthy === 0 && seen.target.healthy > 0) {
    const message = 'The previous revision has no healthy instance: this one goes on serving all traffic.';
    return { to, message, deadlineAt: null, goesOnServing: true };
  }
  if ((restored && seen.target.existing === 0) || isLate) {
    return {
      to,
      message: rollout.hasPrevious ? 'The previous revision serves all traffic.' : 'All its instances are stopped.',
      deadlineAt: null,
    };
  }
  return null;
}

const servesNearlyAll = `It serves all traffic, except at routers that did not take it over within ${routersGetMs / 1000} s.`;

const lost: Failure = { code: 'region_lost', message: 'The region did not answer in time.' };

const late = (seen: Observed, message: string): Failure =>
  seen.regionAvailable ? { code: 'deadline_exceeded', message } : lost;

const because = ({ trouble }: Observed): string => (trouble ? ` ${trouble.message}` : '');

const percentAt = ({ percents, step }: Rollout): number => percents[step - 1] ?? 0;

/** What `abort` does, `by` the token of this name; null: there is nothing left to abort. */
export function abort({ state }: Rollout, by: string, nowMs: number): Step | null {
  const aborted: Failure = { code: 'aborted', message: `Aborted by ${by}.` };
  switch (state) {
    case 'queued':
      return end('canceled', aborted);
    case 'preparing':
    case 'starting':
    case 'canary':
    case 'promoting':
      return undo('abort', aborted, nowMs);
    case 'aborting':
    case 'succeeded':
    case 'failed':
    case 'canceled':
      return null;
  }
}

/** To the next share, or to all traffic after the last one, and why. Also what `promote` does. */
export function advance(rollout: Rollout, policy: Policy, nowMs: number, reason: string): Step {
  if (rollout.step >= rollout.percents.length) return promote(policy, nowMs, reason);
  const next = beginStep(rollout, rollout.step + 1, policy, nowMs);
  return { ...next, message: `${next.message} ${reason}` };
}

/** Begins the given step, or restarts it. Also what `resume` does. */
export function beginStep({ percents }: Rollout, step: number, policy: Policy, nowMs: number): Step {
  const { bake_s, warmup_s } = policy.canary;
  const until = nowMs + (warmup_s + bake_s) * 1000;
  return {
    to: 'canary',
    message: `${percents[step - 1]} % of requests go to the new revision.`,
    deadlineAt: until + Math.max(bakeExtraMs, 10 * bake_s * 1000),
    canary: { phase: 'baking', step, until },
    begins: true,
  };
}

/** One instance has most of the errors: it may be the node that it runs on. Its requests do not count any more. */
function replaceInstance(rollout: Rollout, { reason }: Analysis, instance: string): Step {
  return {
    to: 'canary',
    message: `${reason} Replacing it.`,
    deadlineAt: rollout.deadlineAt,
    canary: { phase: 'baking', step: rollout.step, until: rollout.stepUntil },
    replaces: instance,
  };
}

/** Keeps the share as it is until a person resumes, promotes or aborts. Also what `pause` does. */
export function hold(rollout: Rollout, policy: Policy, nowMs: number, message: string): Step {
  return {
    to: 'canary',
    message,
    deadlineAt: nowMs + policy.canary.approval_timeout_s * 1000,
    canary: { phase: 'paused', step: rollout.step, until: null },
  };
}

export function promote(policy: Policy, nowMs: number, message: string): Step {
  return {
    to: 'promoting',
    message: `${message} Moving all traffic.`,
    deadlineAt: nowMs + promotingForMs(policy),
  };
}

const promotedAt = ({ deadlineAt }: Rollout, policy: Policy): number => deadlineAt - promotingForMs(policy);

const promotingForMs = ({ startTimeoutS }: Policy): number => startTimeoutS * 1000 + promotingExtraMs;

export function undo(cause: RollbackCause, failure: Failure, nowMs: number): Step {
  return { to: 'aborting', message: failure.message, deadlineAt: nowMs + abortingForMs, failure, cause };
}

export const end = (to: 'failed' | 'canceled', failure: Failure): Step => ({
  to,
  message: failure.message,
  deadlineAt: null,
  failure,
});

// A canary under way: all its steps with share and time, how requests are split, and what the analysis makes of them.
import type { Deployment, Environment } from '../../../../src/client/index.ts';
import { count, milliseconds, percent, secondsText } from '../../format.ts';
import { Badge } from './badge.tsx';
import { useNow } from './time.tsx';

type Canary = NonNullable<Deployment['canary']>;

interface Step {
  percent: number;
  /** null: it has no end of its own. */
  seconds: number | null;
}

/** The steps that a canary passes; the last one is all requests. */
export function stepsOf(canaryPercent: number, { steps, bake_s, warmup_s }: Environment['canary']): Step[] {
  const shares = [canaryPercent, ...steps.filter((step) => step > canaryPercent)];
  return [...shares.map((share) => ({ percent: share, seconds: bake_s + warmup_s })), { percent: 100, seconds: null }];
}

const pad = (value: number): string => String(value).padStart(2, '0');
function timeLeft(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(whole % 60)} left` : `${minutes}:${pad(whole % 60)} left`;
}

const phaseNames: Record<Canary['phase'], string> = {
  baking: 'being watched',
  paused: 'paused',
  awaiting_approval: 'waits for you to promote it',
};

/** What the step waits for. */
export function Phase({ canary: { phase, step, until }, of }: { canary: Canary; of?: number }) {
  const now = useNow();
  const left = until === null ? 0 : (Date.parse(until) - now) / 1000;
  const waits =
    phase === 'baking' && until !== null ? (left > 0 ? timeLeft(left) : 'evaluating') : phase === 'baking' ? '' : null;
  return (
    <p className="phase">
      <Badge state={phase}>{phaseNames[phase]}</Badge> {of === undefined ? `step ${step}` : `step ${step} of ${of}`}
      {waits && <span className="left"> · {waits}</span>}
    </p>
  );
}

export function CanarySteps({ deployment, policy }: { deployment: Deployment; policy: Environment['canary'] | null }) {
  const { canary, canary_percent, state } = deployment;
  if (!policy || canary_percent === null) return null;
  const steps = stepsOf(canary_percent, policy);
  const current = canary ? canary.step - 1 : state === 'promoting' || state === 'succeeded' ? steps.length - 1 : -1;
  return (
    <ol className="canary-steps" aria-label="Steps of the canary">
      {steps.map(({ percent: share, seconds }, index) => {
        const isDone = index < current || state === 'succeeded';
        const isNow = index === current && !isDone;
        return (
          <li
            key={share}
            className={isDone ? 'done' : isNow ? 'now' : undefined}
            aria-current={isNow ? 'step' : undefined}
          >
            {share} %{seconds !== null && policy.advance === 'auto' && ` · ${secondsText(seconds)}`}
            {seconds !== null && policy.advance === 'manual' && ' · by hand'}
            {isDone && ' ✓'}
          </li>
        );
      })}
    </ol>
  );
}

export function ShareBar({
  shares,
  isSlim = false,
}: {
  shares: { revision: string; percent: number; fresh: boolean }[];
  isSlim?: boolean;
}) {
  const label = shares.map(({ revision, percent: share }) => `${share} % ${revision}`).join(', ');
  return (
    <div className={isSlim ? 'share-bar slim' : 'share-bar'} role="img" aria-label={`Requests: ${label || 'none'}`}>
      {shares.map(({ revision, percent: share, fresh }) => (
        <span key={revision} className={fresh ? 'canary' : 'stable'} style={{ flexGrow: share }}>
          {!isSlim && `${share} % ${revision}`}
        </span>
      ))}
    </div>
  );
}

interface VerdictProps {
  deployment: Deployment;
  canary: Canary;
  policy: Environment['canary'] | null;
  /** Where requests come from. */
  url: string;
}

/** One sentence with the numbers it rests on, what happens next, and how far it is from a verdict. */
export function Verdict({ deployment: { revision, previous_revision: live }, canary, policy, url }: VerdictProps) {
  const { analysis, phase } = canary;
  const { verdict, reason, evidence } = analysis;
  const { requests } = canary.canary;
  const odds = Math.max(evidence.errors, evidence.latency);
  const missing = (policy?.min_requests ?? 0) - requests;
  // The service knows what is in doubt, as requests without an answer are.
  const isExplained = odds >= evidence.needed || (verdict === 'inconclusive' && missing <= 0);
  return (
    <div className={`verdict ${verdict}`}>
      <p>
        <strong>
          {verdict === 'good'
            ? `No worse than ${live}.`
            : verdict === 'bad'
              ? `Worse than ${live}.`
              : requests === 0
                ? `${revision} has had no requests yet.`
                : 'Too early to tell.'}
        </strong>{' '}
        {isExplained ? reason : requests > 0 && <Numbers canary={canary} live={live} />}{' '}
        {missing > 0 && `${count(missing)} more requests are needed to tell.`}{' '}
        {requests === 0 && (
          <>
            They come from those who visit{' '}
            <a href={url} target="_blank" rel="noreferrer">
              {url}
            </a>
            : each visitor stays on one revision.
          </>
        )}{' '}
        {evidence.client_errors >= evidence.needed && `More of its answers are 4xx than of ${live}.`}
      </p>
      <p className="small">
        {policy && nextOf(phase, policy)} It would be undone at odds of {count(evidence.needed)} to 1 against it;{' '}
        {odds <= 1 ? 'so far nothing speaks against it' : `now ${count(Math.round(odds))} to 1`}.
      </p>
    </div>
  );
}

function nextOf(phase: Canary['phase'], { advance, on_inconclusive }: Environment['canary']): string {
  if (phase === 'paused') return 'It is paused: resume, promote or abort it.';
  if (phase === 'awaiting_approval') return 'It waits for you.';
  if (advance === 'manual') return 'When the step ends, it waits for you to promote it.';
  return on_inconclusive === 'promote'
    ? 'It goes on by itself when the step ends, unless it is found to be worse.'
    : 'It goes on by itself when the step ends, if it is no worse.';
}

const failedOf = ({ requests, error_rate }: Canary['stable']): string =>
  `${count(Math.round(requests * (error_rate ?? 0)))} of ${count(requests)}`;

function Numbers({ canary: { canary, stable }, live }: { canary: Canary; live: string | null }) {
  const isCompared = live !== null && stable.requests > 0;
  return (
    <>
      <b className="canary">{failedOf(canary)}</b> requests failed ({percent(canary.error_rate ?? 0)})
      {isCompared && (
        <>
          , of {live} <b className="stable">{failedOf(stable)}</b> ({percent(stable.error_rate ?? 0)})
        </>
      )}
      {canary.p95_ms !== null && (
        <>
          ; p95 <b className="canary">{milliseconds(canary.p95_ms)}</b>
          {isCompared && stable.p95_ms !== null && (
            <>
              {' '}
              against <b className="stable">{milliseconds(stable.p95_ms)}</b>
            </>
          )}
        </>
      )}
      .
    </>
  );
}

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

/** What the step waits for. */
export function Phase({ canary: { phase, step, until }, of }: { canary: Canary; of?: number }) {
  const now = useNow();
  const left = until === null ? 0 : (Date.parse(until) - now) / 1000;
  const waits =
    phase === 'baking' && until !== null ? (left > 0 ? timeLeft(left) : 'evaluating') : phase === 'baking' ? '' : null;
  return (
    <p className="phase">
      <Badge state={phase}>{phase === 'awaiting_approval' ? 'waits for you to promote it' : phase}</Badge>{' '}
      {of === undefined ? `step ${step}` : `step ${step} of ${of}`}
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

const heads = {
  good: 'No worse than the live revision.',
  bad: 'Worse than the live revision.',
  inconclusive: 'Nothing is proved yet.',
} as const;

/** One sentence with the numbers it rests on, and how far it is from a verdict. */
export function Verdict({ deployment, canary }: { deployment: Deployment; canary: Canary }) {
  const { verdict, reason, evidence } = canary.analysis;
  const odds = Math.max(evidence.errors, evidence.latency);
  return (
    <div className={`verdict ${verdict}`}>
      <p>
        <strong>{heads[verdict]}</strong> {reason}
      </p>
      <p className="sides">
        <Side revision={deployment.revision} side={canary.canary} tone="canary" />
        {deployment.previous_revision && (
          <Side revision={deployment.previous_revision} side={canary.stable} tone="stable" />
        )}
      </p>
      <p className="small">
        It would be undone at odds of {count(evidence.needed)} to 1 against it;{' '}
        {odds <= 1 ? 'so far nothing speaks against it' : `now ${count(Math.round(odds))} to 1`}.
      </p>
    </div>
  );
}

function Side({ revision, side, tone }: { revision: string; side: Canary['stable']; tone: string }) {
  const { requests, error_rate, p95_ms } = side;
  return (
    <span>
      <b className={tone}>{revision}</b>{' '}
      {requests === 0
        ? 'no requests yet'
        : `${count(requests)} requests, ${percent(error_rate ?? 0)} failed, p95 ${p95_ms === null ? '–' : milliseconds(p95_ms)}`}
    </span>
  );
}

import type { Deployment, DeploymentState } from '../../../../src/client/index.ts';
import { Badge, wordsOf } from './badge.tsx';
import { duration, useNow } from './time.tsx';

const path: DeploymentState[] = ['queued', 'preparing', 'starting', 'canary', 'promoting', 'succeeded'];

/** The way a deployment takes, and how far it is. What went wrong ends the way where it went wrong. */
export function Stepper({ deployment }: { deployment: Deployment }) {
  const { state, timeline, strategy, kind } = deployment;
  const been = new Set(timeline.map((moment) => moment.state));
  const isStraight = strategy !== 'canary' || kind === 'rollback';
  const steps = path.filter((step) => step !== 'canary' || !isStraight || been.has('canary'));
  const isOffPath = !path.includes(state);
  const shown = isOffPath ? [...steps.filter((step) => been.has(step)), state] : steps;
  const here = shown.indexOf(state);
  return (
    <div className="stepper-row">
      <ol className="stepper" aria-label="Steps">
        {shown.map((step, index) => (
          <li
            key={step}
            className={
              index < here || state === 'succeeded' ? 'done' : index === here ? (isOffPath ? 'bad' : 'now') : undefined
            }
            aria-current={index === here ? 'step' : undefined}
          >
            {wordsOf(step)}
          </li>
        ))}
      </ol>
      {deployment.canary && <Phase canary={deployment.canary} />}
    </div>
  );
}

function Phase({ canary: { phase, step, percent, until } }: { canary: NonNullable<Deployment['canary']> }) {
  const now = useNow();
  const left = until === null ? 0 : (Date.parse(until) - now) / 1000;
  return (
    <p className="phase">
      <Badge state={phase} /> Step {step}: {percent} % of requests
      {phase === 'baking' && until !== null && (left > 0 ? `, ${duration(left)} left` : ', deciding')}
      {phase === 'awaiting_approval' && ', promote it to go on'}
    </p>
  );
}

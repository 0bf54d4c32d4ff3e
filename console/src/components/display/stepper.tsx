import type { Deployment, DeploymentState } from '../../../../src/client/index.ts';
import { Badge, labelOf } from './badge.tsx';
import { duration, useNow } from './time.tsx';

const path: DeploymentState[] = ['queued', 'preparing', 'starting', 'canary', 'promoting', 'succeeded'];

/** The states a deployment passes and the one it is in. A failure is shown after the last state that was reached. */
export function Stepper({ deployment }: { deployment: Deployment }) {
  const { state, timeline, strategy, kind } = deployment;
  const reached = new Set(timeline.map((moment) => moment.state));
  const isStraight = strategy !== 'canary' || kind === 'rollback';
  const steps = path.filter((step) => step !== 'canary' || !isStraight || reached.has('canary'));
  const isOffPath = !path.includes(state);
  const shown = isOffPath ? [...steps.filter((step) => reached.has(step)), state] : steps;
  const current = shown.indexOf(state);
  return (
    <div className="stepper-row">
      <ol className="stepper" aria-label="Steps">
        {shown.map((step, index) => (
          <li
            key={step}
            className={
              index < current || state === 'succeeded'
                ? 'done'
                : index === current
                  ? isOffPath
                    ? 'bad'
                    : 'now'
                  : undefined
            }
            aria-current={index === current ? 'step' : undefined}
          >
            {labelOf(step)}
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
      <Badge state={phase} /> Step {step}: {percent}% of traffic
      {phase === 'baking' && until !== null && (left > 0 ? `, ${duration(left)} left` : ', evaluating')}
      {phase === 'awaiting_approval' && ', waiting for promotion'}
    </p>
  );
}

import type { Deployment, DeploymentState } from '../../../../src/client/index.ts';
import { labelOf } from './badge.tsx';

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
    </div>
  );
}

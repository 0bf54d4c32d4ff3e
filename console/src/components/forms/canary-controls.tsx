import type { Deployment } from '../../../../src/client/index.ts';
import { useCan, useSignedIn } from '../../session.ts';
import { ActionButton, ConfirmButton } from './actions.tsx';

/** The commands that the state of a deployment allows; none once it has finished. */
export function CanaryControls({ deployment }: { deployment: Deployment }) {
  const { client } = useSignedIn();
  const can = useCan();
  const { id, project_id: project, state, canary, revision, previous_revision, finished_at } = deployment;
  if (finished_at !== null || state === 'aborting' || !can('deployments:write')) return null;
  const isPaused = canary?.phase === 'paused';
  return (
    <>
      {state === 'canary' && (
        <>
          <ActionButton className="main" run={() => client.deployments.promote(project, id)} done="Promoted.">
            Promote
          </ActionButton>
          {isPaused ? (
            <ActionButton run={() => client.deployments.resume(project, id)} done="Resumed.">
              Resume
            </ActionButton>
          ) : (
            <ActionButton run={() => client.deployments.pause(project, id)} done="Paused.">
              Pause
            </ActionButton>
          )}
        </>
      )}
      <ConfirmButton
        title="Abort this deployment?"
        about={
          previous_revision
            ? `All traffic returns to ${previous_revision} at once, and ${revision} is stopped.`
            : `${revision} is stopped. There is no previous revision.`
        }
        verb="Abort"
        run={() => client.deployments.abort(project, id)}
        done="Aborting."
      >
        Abort
      </ConfirmButton>
    </>
  );
}

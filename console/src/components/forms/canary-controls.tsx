import type { Deployment } from '../../../../src/client/index.ts';
import { useCan, useSignedIn } from '../../session.ts';
import { ActionButton, ConfirmButton } from './actions.tsx';

/** What can be done with a deployment in its state: nothing once it has ended. */
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
          <ActionButton className="main" run={() => client.deployments.promote(project, id)} done="Going on.">
            Promote
          </ActionButton>
          {isPaused ? (
            <ActionButton run={() => client.deployments.resume(project, id)} done="Resumed.">
              Resume
            </ActionButton>
          ) : (
            <ActionButton run={() => client.deployments.pause(project, id)} done="Paused at its share.">
              Pause
            </ActionButton>
          )}
        </>
      )}
      <ConfirmButton
        title="Abort this deployment?"
        about={
          previous_revision
            ? `${previous_revision} gets all traffic back at once, and ${revision} is stopped.`
            : `${revision} is stopped. Nothing was live before it.`
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

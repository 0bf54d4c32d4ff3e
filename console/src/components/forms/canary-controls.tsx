import { useCan, useSignedIn } from '../../session.ts';
import { ActionButton, ConfirmButton } from './actions.tsx';

/** What the commands need to know of a deployment: the record has it, and so has its summary in lists. */
interface Controlled {
  id: string;
  project_id: string;
  environment: string;
  state: string;
  revision: string;
  previous_revision: string | null;
  finished_at: string | null;
  canary: { phase: string } | null;
}

/** The commands that the state of a deployment allows; none once it has finished. */
export function CanaryControls({ deployment, isBrief = false }: { deployment: Controlled; isBrief?: boolean }) {
  const { client } = useSignedIn();
  const can = useCan();
  const { id, project_id: project, environment, state, canary, revision, previous_revision, finished_at } = deployment;
  if (finished_at !== null || state === 'aborting' || !can('deployments:write')) return null;
  const where = <span className="unseen"> of {environment}</span>;
  return (
    <>
      <ConfirmButton
        title={`Abort the deployment of ${revision}?`}
        about={
          previous_revision
            ? `All requests go to ${previous_revision} at once, and the instances of ${revision} are stopped.`
            : `The instances of ${revision} are stopped. There is no previous revision: nothing serves then.`
        }
        verb={`Abort ${revision}`}
        className="quiet bad"
        run={() => client.deployments.abort(project, id)}
        done={`${revision} is being aborted.`}
      >
        Abort{isBrief && where}
      </ConfirmButton>
      {state === 'canary' && !isBrief && (
        <ActionButton
          run={() =>
            canary?.phase === 'paused' ? client.deployments.resume(project, id) : client.deployments.pause(project, id)
          }
          done={canary?.phase === 'paused' ? `${revision} goes on.` : `${revision} stays at its share.`}
        >
          {canary?.phase === 'paused' ? 'Resume' : 'Pause'}
        </ActionButton>
      )}
      {state === 'canary' && (
        <ActionButton
          className={isBrief ? 'quiet' : 'main'}
          run={() => client.deployments.promote(project, id)}
          done={`${revision} was promoted.`}
        >
          Promote{!isBrief && ` ${revision}`}
          {isBrief && where}
        </ActionButton>
      )}
    </>
  );
}

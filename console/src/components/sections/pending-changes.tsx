// Settings that were changed and do not hold yet, with the button that rolls them out.
import type { Environment } from '../../../../src/client/index.ts';
import { navigate } from '../../router.ts';
import { useCan, useSignedIn } from '../../session.ts';
import { ConfirmButton } from '../forms/actions.tsx';
import { pendingText } from '../pending-text.ts';

type Change = Environment['pending_changes'][number];

/** The value of a variable is not known here. */
function describe({ field, change, from, to }: Change): string {
  return field.startsWith('variables.') ? change : `${from ?? 'none'} → ${to ?? 'none'}`;
}

export function PendingChanges({ project, environment }: { project: string; environment: Environment }) {
  const { client } = useSignedIn();
  const can = useCan();
  const { name, pending_changes: pending, in_progress_deployment, locked } = environment;
  if (pending.length === 0) return null;
  const redeploy = async () => {
    const { id } = await client.environments.redeploy(project, name);
    navigate(`/projects/${project}/deployments/${id}`);
  };
  const mayRedeploy = can('deployments:write') && in_progress_deployment === null && locked === null;
  return (
    <section className="panel pending" aria-labelledby="pending">
      <h2 id="pending">{pendingText(pending.length)}</h2>
      <ul className="variables">
        {pending.map((change) => (
          <li key={change.field}>
            <code>{change.field}</code> {describe(change)}
          </li>
        ))}
      </ul>
      {mayRedeploy && (
        <div className="row">
          <ConfirmButton
            title={`Redeploy ${name}?`}
            about="This rolls the live image out again as a new revision, with the settings and variables as they are now, one instance after another."
            verb="Redeploy now"
            run={redeploy}
          >
            Redeploy now
          </ConfirmButton>
        </div>
      )}
    </section>
  );
}

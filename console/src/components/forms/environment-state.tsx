// The variables and the lock of an environment. Values of variables are write-only.
import type { Environment } from '../../../../src/client/index.ts';
import { useCan, useSignedIn } from '../../session.ts';
import { Ago } from '../display/time.tsx';
import { notify } from '../layout/notices.tsx';
import { Empty } from '../layout/states.tsx';
import { pendingText } from '../pending-text.ts';
import { PendingChanges } from '../sections/pending-changes.tsx';
import { ActionButton, ConfirmButton } from './actions.tsx';
import { Form, Input, textField } from './form.tsx';

export interface EnvironmentProps {
  project: string;
  environment: Environment;
}

/** Says what of all that was changed does not hold yet. */
export function notifySaved(done: string, { pending_changes: pending }: Environment): void {
  notify(pending.length === 0 ? done : `${done} ${pendingText(pending.length)}.`);
}

export function Variables({ project, environment }: EnvironmentProps) {
  const { name, variables } = environment;
  const { client } = useSignedIn();
  const can = useCan();
  const mayChange = can('projects:write');
  const submit = async (data: FormData) => {
    const variable = textField(data, 'variable') ?? '';
    const value = String(data.get('variables') ?? '');
    notifySaved(
      `${variable} is set.`,
      await client.environments.update(project, name, { variables: { [variable]: value } }),
    );
  };
  const removed = new Map(environment.pending_changes.map(({ field, change }) => [field, change]));
  return (
    <>
      <PendingChanges project={project} environment={environment} />
      {variables.length === 0 ? (
        <Empty
          title="No variables yet."
          command={`npx sluice env variables DATABASE_URL=postgres://db --project ${project} --env ${name}`}
        >
          Variables are passed to every instance, from the next deployment on. Their values are never shown again.
        </Empty>
      ) : (
        <ul className="panel variables">
          {variables.map((variable) => (
            <li key={variable}>
              <code>{variable}</code>{' '}
              {removed.has(`variables.${variable}`) && (
                <span className="small">{removed.get(`variables.${variable}`)}, applies with the next deployment</span>
              )}
              {mayChange && (
                <ConfirmButton
                  title={`Remove ${variable}?`}
                  mustType={variable}
                  about="Running revisions keep it. It is gone from the next deployment on."
                  verb={`Remove ${variable}`}
                  className="bare"
                  run={() => client.environments.update(project, name, { variables: { [variable]: null } })}
                  done={`${variable} is removed.`}
                >
                  Remove<span className="unseen"> {variable}</span>
                </ConfirmButton>
              )}
            </li>
          ))}
        </ul>
      )}
      {mayChange && (
        <section className="panel" aria-labelledby="set-variable">
          <h2 id="set-variable">Set a variable</h2>
          <Form label="Set a variable" verb="Set variable" submit={submit}>
            <div className="fields">
              <Input
                name="variable"
                label="Name"
                placeholder="DATABASE_URL"
                required
                pattern="[A-Za-z_][A-Za-z0-9_]{0,127}"
                title="must have only letters, digits and underscores, and not begin with a digit"
              />
              <Input
                name="variables"
                label="Value"
                type="password"
                autoComplete="new-password"
                hint="Never shown again."
              />
            </div>
          </Form>
        </section>
      )}
    </>
  );
}

export function Lock({ project, environment: { name, locked } }: EnvironmentProps) {
  const { client } = useSignedIn();
  const submit = (data: FormData) =>
    client.environments.update(project, name, { locked: { reason: textField(data, 'locked.reason') ?? '' } });
  return (
    <section className="panel setting-group" aria-labelledby="lock">
      <div>
        <h2 id="lock">Lock</h2>
        <p className="hint">Blocks deployments; who tries is told the reason. Applies at once.</p>
      </div>
      {locked ? (
        <div className="row">
          <p>
            Locked <Ago at={locked.at} />: {locked.reason}
          </p>
          <ActionButton
            run={() => client.environments.update(project, name, { locked: null })}
            done={`${name} is unlocked.`}
          >
            Unlock
          </ActionButton>
        </div>
      ) : (
        <Form label="Lock" verb={`Lock ${name}`} submit={submit}>
          <Input name="locked.reason" label="Reason" required maxLength={500} />
        </Form>
      )}
    </section>
  );
}

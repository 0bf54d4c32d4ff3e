// The variables and the lock of an environment. Values of variables are write-only.
import type { Environment } from '../../../../src/client/index.ts';
import { useSignedIn } from '../../session.ts';
import { notify } from '../layout/notices.tsx';
import { pendingText } from '../pending-text.ts';
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

export function Variables({ project, environment: { name, variables } }: EnvironmentProps) {
  const { client } = useSignedIn();
  const submit = async (data: FormData) => {
    const variable = textField(data, 'variable') ?? '';
    const value = String(data.get('variables') ?? '');
    notifySaved(
      `${variable} is set.`,
      await client.environments.update(project, name, { variables: { [variable]: value } }),
    );
  };
  return (
    <fieldset>
      <legend>Variables</legend>
      <p className="hint">Passed to every instance from the next deployment on. Values are write-only.</p>
      <ul className="variables">
        {variables.map((variable) => (
          <li key={variable}>
            <code>{variable}</code>
            <ConfirmButton
              title={`Remove ${variable}?`}
              about="Running revisions keep it. It is gone from the next deployment on."
              verb="Remove"
              className="bare"
              run={() => client.environments.update(project, name, { variables: { [variable]: null } })}
            >
              Remove<span className="unseen"> {variable}</span>
            </ConfirmButton>
          </li>
        ))}
      </ul>
      <Form label="Set a variable" verb="Set variable" submit={submit}>
        <div className="fields">
          <Input name="variable" label="Name" placeholder="DATABASE_URL" />
          <Input name="variables" label="Value" type="password" autoComplete="new-password" />
        </div>
      </Form>
    </fieldset>
  );
}

export function Lock({ project, environment: { name, locked } }: EnvironmentProps) {
  const { client } = useSignedIn();
  if (locked) {
    return (
      <fieldset>
        <legend>Lock</legend>
        <p>Deployments are blocked: {locked.reason}</p>
        <ActionButton run={() => client.environments.update(project, name, { locked: null })} done="Unlocked.">
          Unlock
        </ActionButton>
      </fieldset>
    );
  }
  const submit = (data: FormData) =>
    client.environments.update(project, name, { locked: { reason: textField(data, 'locked.reason') ?? '' } });
  return (
    <fieldset>
      <legend>Lock</legend>
      <Form label="Lock" verb="Lock" submit={submit}>
        <Input
          name="locked.reason"
          label="Reason"
          hint="Blocks deployments; the reason is shown to anyone who tries."
        />
      </Form>
    </fieldset>
  );
}

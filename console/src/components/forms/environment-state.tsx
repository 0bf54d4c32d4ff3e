// What an environment holds beside its settings: variables that can be set and never read, and its lock.
import type { Environment } from '../../../../src/client/index.ts';
import { useSignedIn } from '../../session.ts';
import { tell } from '../layout/notices.tsx';
import { ActionButton, ConfirmButton } from './actions.tsx';
import { Form, Input, textField } from './form.tsx';

export interface EnvironmentProps {
  project: string;
  environment: Environment;
}

export function Variables({ project, environment: { name, variables } }: EnvironmentProps) {
  const { client } = useSignedIn();
  const submit = async (data: FormData) => {
    const variable = textField(data, 'variable') ?? '';
    await client.environments.update(project, name, { variables: { [variable]: String(data.get('variables') ?? '') } });
    tell(`${variable} is set. The next revision gets it.`);
  };
  return (
    <fieldset>
      <legend>Variables</legend>
      <p className="hint">Given to every instance of the next revision. Values can be set, never read.</p>
      <ul className="variables">
        {variables.map((variable) => (
          <li key={variable}>
            <code>{variable}</code>
            <ConfirmButton
              title={`Remove ${variable}?`}
              about="Revisions that run keep it. The next one is made without it."
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
        <p>Nobody can deploy here: {locked.reason}</p>
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
          hint="Nobody can deploy while it is locked; the reason is shown to who tries."
        />
      </Form>
    </fieldset>
  );
}

// Settings of an environment, in three forms that are saved apart: how it runs, its variables, its lock.
import { useSignedIn } from '../../session.ts';
import { tell } from '../layout/notices.tsx';
import { type EnvironmentProps, Lock, Variables } from './environment-state.tsx';
import { Check, Form, Input, numberField, Select, textField } from './form.tsx';

/** Fields in the order they are shown: a name as the API has it, and what it is called. */
const plain = [
  ['replicas', 'Instances', 'Of each live revision.'],
  ['port', 'Port', 'Where an instance listens; also given to it as PORT.'],
  ['drain_s', 'Drain, seconds', 'An instance may finish its requests that long.'],
  ['retention', 'Revisions kept', 'Superseded ones that can be rolled back to.'],
] as const;
const health = [
  ['interval_s', 'Every, seconds'],
  ['timeout_s', 'Time limit, seconds'],
  ['healthy_after', 'Healthy after'],
  ['unhealthy_after', 'Unhealthy after'],
  ['start_timeout_s', 'Start limit, seconds'],
] as const;
const canary = [
  ['bake_s', 'Bake, seconds', 'Each step is watched that long.'],
  ['min_requests', 'Least requests', 'Before its figures count.'],
  ['max_error_rate', 'Highest error rate', 'A share: 0.05 is 5 %.'],
  ['approval_timeout_s', 'Approval limit, seconds', 'How long manual waits.'],
] as const;

function changesOf(data: FormData) {
  const numbers = (prefix: string, names: readonly (readonly [string, ...unknown[]])[]) =>
    Object.fromEntries(names.map(([name]) => [name, numberField(data, prefix + name)]));
  const steps = (textField(data, 'canary.steps') ?? '')
    .split(/[\s,]+/)
    .filter(Boolean)
    .map(Number);
  return {
    ...numbers('', plain),
    auto_rollback: data.has('auto_rollback'),
    health_check: { ...numbers('health_check.', health), path: textField(data, 'health_check.path') ?? null },
    canary: {
      ...numbers('canary.', canary),
      advance: textField(data, 'canary.advance') as 'auto' | 'manual',
      steps,
      max_p95_ms: numberField(data, 'canary.max_p95_ms') ?? null,
    },
  };
}

export function EnvironmentSettings({ project, environment }: EnvironmentProps) {
  return (
    <section className="panel" aria-labelledby="settings">
      <h2 id="settings">Settings</h2>
      <Running project={project} environment={environment} />
      <Variables project={project} environment={environment} />
      <Lock project={project} environment={environment} />
    </section>
  );
}

function Running({ project, environment }: EnvironmentProps) {
  const { client } = useSignedIn();
  const { name, health_check, canary: policy } = environment;
  const submit = async (data: FormData) => {
    await client.environments.update(project, name, changesOf(data));
    tell('Saved. It holds from the next deployment on.');
  };
  return (
    <Form label="Settings" verb="Save settings" submit={submit} keep>
      <div className="fields">
        {plain.map(([field, label, hint]) => (
          <Input key={field} name={field} label={label} hint={hint} type="number" defaultValue={environment[field]} />
        ))}
      </div>
      <Check
        name="auto_rollback"
        defaultChecked={environment.auto_rollback}
        label="Undo a canary that fails its analysis; otherwise it is paused"
      />
      <fieldset>
        <legend>Health check</legend>
        <div className="fields">
          <Input
            name="health_check.path"
            label="Path"
            placeholder="/healthz"
            defaultValue={health_check.path ?? ''}
            hint="Empty: a TCP connection is enough."
          />
          {health.map(([field, label]) => (
            <Input
              key={field}
              name={`health_check.${field}`}
              label={label}
              type="number"
              defaultValue={health_check[field]}
            />
          ))}
        </div>
      </fieldset>
      <fieldset>
        <legend>Canaries</legend>
        <div className="fields">
          <Select
            name="canary.advance"
            label="Goes on"
            defaultValue={policy.advance}
            options={[
              ['auto', 'by itself'],
              ['manual', 'when promoted'],
            ]}
          />
          <Input
            name="canary.steps"
            label="Further steps, percent"
            placeholder="25, 50"
            defaultValue={policy.steps.join(', ')}
            hint="After the first share, rising."
          />
          {canary.map(([field, label, hint]) => (
            <Input
              key={field}
              name={`canary.${field}`}
              label={label}
              hint={hint}
              type="number"
              step="any"
              defaultValue={policy[field]}
            />
          ))}
          <Input
            name="canary.max_p95_ms"
            label="Highest p95, ms"
            type="number"
            defaultValue={policy.max_p95_ms ?? ''}
            hint="Empty: not looked at."
          />
        </div>
      </fieldset>
    </Form>
  );
}

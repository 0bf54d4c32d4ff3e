// Settings of an environment, in three forms that are saved separately: how it runs, its variables, its lock.
import { useSignedIn } from '../../session.ts';
import { notify } from '../layout/notices.tsx';
import { type EnvironmentProps, Lock, Variables } from './environment-state.tsx';
import { Check, Form, Input, numberField, Select, textField } from './form.tsx';

/** Fields in the order they are shown: the name in the API, the label, the hint. */
const plain = [
  ['replicas', 'Instances', 'Per live revision.'],
  [
    'port',
    'Port',
    'Instances listen here; passed to them as PORT. Until it is set, the only port that the image exposes.',
  ],
  ['drain_s', 'Drain time (s)', 'How long an instance may finish its requests.'],
  ['retention', 'Revisions kept', 'Superseded revisions available for rollback.'],
] as const;
const health = [
  ['interval_s', 'Interval (s)'],
  ['timeout_s', 'Timeout (s)'],
  ['healthy_after', 'Healthy after (checks)'],
  ['unhealthy_after', 'Unhealthy after (checks)'],
  ['start_timeout_s', 'Startup timeout (s)'],
] as const;
const canary = [
  ['bake_s', 'Bake time (s)', 'How long each step is observed.'],
  ['warmup_s', 'Warm-up (s)', 'The first seconds of a step, which do not count.'],
  ['min_requests', 'Minimum requests', 'Fewer are not enough for a good canary.'],
  ['max_error_rate', 'Maximum error rate', 'A fraction: 0.05 is 5%.'],
  ['approval_timeout_s', 'Approval timeout (s)', 'How long a manual promotion may take.'],
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
    port: numberField(data, 'port'),
    auto_rollback: data.has('auto_rollback'),
    health_check: { ...numbers('health_check.', health), path: textField(data, 'health_check.path') ?? null },
    canary: {
      ...numbers('canary.', canary),
      advance: textField(data, 'canary.advance') as 'auto' | 'manual',
      on_inconclusive: textField(data, 'canary.on_inconclusive') as 'promote' | 'abort' | 'hold',
      steps,
      max_client_error_rate: numberField(data, 'canary.max_client_error_rate') ?? null,
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
    const { port, ...changes } = changesOf(data);
    // One that was never set follows the image: it stays so unless somebody changes it.
    const isChanged = port !== undefined && port !== environment.port;
    await client.environments.update(project, name, { ...changes, ...(isChanged && { port }) });
    notify('Saved. Takes effect with the next deployment.');
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
        label="Roll back a canary that fails its analysis (otherwise it is paused)"
      />
      <fieldset>
        <legend>Health check</legend>
        <div className="fields">
          <Input
            name="health_check.path"
            label="Path"
            placeholder="/healthz"
            defaultValue={health_check.path ?? ''}
            hint="Leave empty for a TCP check."
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
        <legend>Canary</legend>
        <div className="fields">
          <Select
            name="canary.advance"
            label="Promotion"
            defaultValue={policy.advance}
            options={[
              ['auto', 'automatic'],
              ['manual', 'manual'],
            ]}
          />
          <Input
            name="canary.steps"
            label="Further steps (%)"
            placeholder="25, 50"
            defaultValue={policy.steps.join(', ')}
            hint="Increasing, after the initial traffic."
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
            name="canary.max_client_error_rate"
            label="Maximum rate of 4xx"
            type="number"
            step="any"
            defaultValue={policy.max_client_error_rate ?? ''}
            hint="A fraction. Leave empty to see 4xx without judging them."
          />
          <Input
            name="canary.max_p95_ms"
            label="Maximum p95 (ms)"
            type="number"
            defaultValue={policy.max_p95_ms ?? ''}
            hint="Leave empty to compare with the live revision only."
          />
          <Select
            name="canary.on_inconclusive"
            label="If nothing is proved"
            defaultValue={policy.on_inconclusive}
            options={[
              ['promote', 'promote'],
              ['abort', 'abort'],
              ['hold', 'pause'],
            ]}
          />
        </div>
      </fieldset>
    </Form>
  );
}

import type { AlertRule } from '../../../../src/client/index.ts';
import { useSignedIn } from '../../session.ts';
import { notify } from '../layout/notices.tsx';
import { Form, Input, numberField, Select, textField } from './form.tsx';

export type Metric = AlertRule['metric'];

const metricChoices = [
  ['error_rate', 'Error rate'],
  ['p95_ms', 'p95 latency'],
  ['request_rate', 'Request rate'],
  ['healthy_instances', 'Healthy instances'],
  ['restarts', 'Restarts'],
  ['certificate_days_left', 'Certificate days left'],
  ['external', 'External (Alertmanager)'],
] as const satisfies [Metric, string][];
export const nameOf = new Map<string, string>(metricChoices);

function ConditionFields({ rule }: { rule?: AlertRule }) {
  return (
    <>
      <Select
        name="comparator"
        label="Condition"
        defaultValue={rule?.comparator ?? 'gt'}
        options={[
          ['gt', 'above'],
          ['lt', 'below'],
        ]}
      />
      <Input
        name="threshold"
        label="Threshold"
        type="number"
        step="any"
        defaultValue={rule?.threshold ?? 0.05}
        hint="An error rate is a fraction: 0.05 is 5%."
      />
      <Input name="window_s" label="Window (s)" type="number" defaultValue={rule?.window_s ?? 60} />
      <Input name="for_s" label="Pending period (s)" type="number" defaultValue={rule?.for_s ?? 0} />
      <Select
        name="severity"
        label="Severity"
        defaultValue={rule?.severity ?? 'warning'}
        options={[
          ['info', 'info'],
          ['warning', 'warning'],
          ['critical', 'critical'],
        ]}
      />
      <Select
        name="on_canary"
        label="During a canary"
        defaultValue={rule?.on_canary ?? 'none'}
        options={[
          ['none', 'notify only'],
          ['abort', 'abort the canary'],
        ]}
      />
    </>
  );
}

const conditionIn = (data: FormData) => ({
  comparator: textField(data, 'comparator') as AlertRule['comparator'],
  threshold: numberField(data, 'threshold') ?? 0,
  window_s: numberField(data, 'window_s') ?? 60,
  for_s: numberField(data, 'for_s') ?? 0,
  severity: textField(data, 'severity') as AlertRule['severity'],
  on_canary: textField(data, 'on_canary') as AlertRule['on_canary'],
});

export function EditRule({ project, rule }: { project: string; rule: AlertRule }) {
  const { client } = useSignedIn();
  const submit = async (data: FormData) => {
    await client.alertRules.update(project, rule.id, { name: textField(data, 'name') ?? '', ...conditionIn(data) });
    notify('Saved.');
  };
  return (
    <details>
      <summary>
        Edit
        <span className="unseen">
          {' '}
          {rule.name} in {rule.environment}
        </span>
      </summary>
      <Form label={`Edit ${rule.name} in ${rule.environment}`} verb="Save rule" submit={submit} keep>
        <div className="fields">
          <Input name="name" label="Name" defaultValue={rule.name} />
          {rule.metric !== 'external' && <ConditionFields rule={rule} />}
        </div>
      </Form>
    </details>
  );
}

export function NewRule({ project, environments }: { project: string; environments: string[] }) {
  const { client } = useSignedIn();
  const submit = async (data: FormData) => {
    const metric = textField(data, 'metric') as Metric;
    const common = { environment: textField(data, 'environment') ?? '', name: textField(data, 'name') ?? '', metric };
    await client.alertRules.create(project, metric === 'external' ? common : { ...common, ...conditionIn(data) });
    notify('Rule created.');
  };
  return (
    <details className="panel">
      <summary>New rule</summary>
      <Form label="New rule" verb="Create rule" submit={submit}>
        <div className="fields">
          <Input name="name" label="Name" />
          <Select name="environment" label="Environment" options={environments.map((name) => [name, name] as const)} />
          <Select name="metric" label="Metric" options={metricChoices} />
          <ConditionFields />
        </div>
      </Form>
    </details>
  );
}

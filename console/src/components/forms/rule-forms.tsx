import { useState } from 'react';
import type { AlertRule } from '../../../../src/client/index.ts';
import { useSignedIn } from '../../session.ts';
import { notify } from '../layout/notices.tsx';
import { Form, fractionField, Input, numberField, Select, secondsField, TimeInput, textField } from './form.tsx';

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

/** In what the threshold of a metric is written; those of an error rate are percent. */
const units: Record<Metric, string> = {
  error_rate: '%',
  p95_ms: 'ms',
  request_rate: '/s',
  healthy_instances: 'instances',
  restarts: 'restarts',
  certificate_days_left: 'days',
  external: '',
};

const shown = (metric: Metric, threshold: number): number =>
  metric === 'error_rate' ? Math.round(threshold * 1e6) / 1e4 : threshold;

function ConditionFields({ metric, rule }: { metric: Metric; rule?: AlertRule }) {
  return (
    <>
      <Select
        name="comparator"
        label="Condition"
        defaultValue={
          rule?.comparator ?? (metric === 'healthy_instances' || metric === 'certificate_days_left' ? 'lt' : 'gt')
        }
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
        min={0}
        required
        unit={units[metric]}
        defaultValue={rule ? shown(metric, rule.threshold) : metric === 'error_rate' ? 5 : 1}
      />
      <TimeInput
        name="window_s"
        label="Window"
        min={10}
        max={86_400}
        seconds={rule?.window_s ?? 60}
        hint="How much of the past is measured. Default: 1 min."
      />
      <TimeInput
        name="for_s"
        label="Pending period"
        min={0}
        max={86_400}
        seconds={rule?.for_s ?? 0}
        hint="So long the condition must hold before it fires, and be gone before it resolves. Default: 0 s."
      />
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

const conditionIn = (data: FormData, metric: Metric) => ({
  comparator: textField(data, 'comparator') as AlertRule['comparator'],
  threshold: (metric === 'error_rate' ? fractionField(data, 'threshold') : numberField(data, 'threshold')) ?? 0,
  window_s: secondsField(data, 'window_s') ?? 60,
  for_s: secondsField(data, 'for_s') ?? 0,
  severity: textField(data, 'severity') as AlertRule['severity'],
  on_canary: textField(data, 'on_canary') as AlertRule['on_canary'],
});

export function EditRule({ project, rule, onDone }: { project: string; rule: AlertRule; onDone(): void }) {
  const { client } = useSignedIn();
  const isMeasured = rule.metric !== 'external';
  const submit = async (data: FormData) => {
    const name = textField(data, 'name') ?? '';
    await client.alertRules.update(project, rule.id, { name, ...(isMeasured && conditionIn(data, rule.metric)) });
    notify(`Saved the rule ${name}.`);
    onDone();
  };
  return (
    <Form label={`Edit ${rule.name} in ${rule.environment}`} verb="Save rule" submit={submit} keep>
      <div className="fields">
        <Input name="name" label="Name" required maxLength={100} defaultValue={rule.name} />
        {isMeasured && <ConditionFields metric={rule.metric} rule={rule} />}
      </div>
    </Form>
  );
}

interface NewRuleProps {
  project: string;
  environments: string[];
  onDone(): void;
}

export function NewRule({ project, environments, onDone }: NewRuleProps) {
  const { client } = useSignedIn();
  const [metric, setMetric] = useState<Metric>('error_rate');
  const submit = async (data: FormData) => {
    const name = textField(data, 'name') ?? '';
    const common = { environment: textField(data, 'environment') ?? '', name, metric };
    await client.alertRules.create(
      project,
      metric === 'external' ? common : { ...common, ...conditionIn(data, metric) },
    );
    notify(`Created the rule ${name}.`);
    onDone();
  };
  return (
    <Form label="New rule" verb="Create rule" submit={submit}>
      <div className="fields">
        <Input name="name" label="Name" required maxLength={100} />
        <Select name="environment" label="Environment" options={environments.map((name) => [name, name] as const)} />
        <Select
          name="metric"
          label="Metric"
          options={metricChoices}
          value={metric}
          onChange={(event) => setMetric(event.currentTarget.value as Metric)}
        />
        {metric !== 'external' && <ConditionFields key={metric} metric={metric} />}
      </div>
    </Form>
  );
}

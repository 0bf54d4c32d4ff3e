// Settings of an environment, in groups that are saved by themselves. Times and shares are written as people say them;
// beside each field stands its default.
import type { ReactNode } from 'react';
import type { Environment, UpdateEnvironment } from '../../../../src/client/index.ts';
import { defaults } from '../../environment-defaults.ts';
import { count, secondsText } from '../../format.ts';
import { useCan, useSignedIn } from '../../session.ts';
import { PendingChanges } from '../sections/pending-changes.tsx';
import { type EnvironmentProps, Lock, notifySaved } from './environment-state.tsx';
import { Check, Form, fractionField, Input, numberField, Select, secondsField, TimeInput, textField } from './form.tsx';

const withDefault = (text: string, value: string): string => `${text} Default: ${value}.`.trim();

interface GroupProps extends EnvironmentProps {
  title: string;
  about: string;
  /** Part of a revision: what is changed waits for the next deployment. */
  waits?: boolean;
  changesOf(data: FormData): UpdateEnvironment;
  children: ReactNode;
}

function Group({ project, environment, title, about, waits = false, changesOf, children }: GroupProps) {
  const { client } = useSignedIn();
  const id = title.toLowerCase().replaceAll(' ', '-');
  const submit = async (data: FormData) => {
    const changed = await client.environments.update(project, environment.name, changesOf(data));
    notifySaved(`${title} of ${environment.name} saved.`, changed);
  };
  return (
    <section className="panel setting-group" aria-labelledby={id}>
      <div>
        <h2 id={id}>{title}</h2>
        <p className="hint">
          {about} {waits ? 'Applies with the next deployment.' : 'Applies at once.'}
        </p>
      </div>
      <Form label={title} verb={`Save ${title.toLowerCase()}`} submit={submit} keep marksChanges>
        <div className="fields">{children}</div>
      </Form>
    </section>
  );
}

export function EnvironmentSettings({ project, environment }: EnvironmentProps) {
  const can = useCan();
  if (!can('projects:write')) return <p className="hint">Your token may see settings, not change them.</p>;
  const props = { project, environment };
  return (
    <>
      <PendingChanges {...props} />
      <Scale {...props} />
      <Network {...props} />
      <Resources {...props} />
      <Canary {...props} />
      <Analysis {...props} />
      <Lock {...props} />
    </>
  );
}

function Scale(props: EnvironmentProps) {
  const { environment } = props;
  return (
    <Group
      {...props}
      title="Instances"
      about="How many run, and how they are replaced."
      changesOf={(data) => ({
        replicas: numberField(data, 'replicas'),
        drain_s: secondsField(data, 'drain_s'),
        retention: numberField(data, 'retention'),
      })}
    >
      <Input
        name="replicas"
        label="Instances"
        type="number"
        min={1}
        max={20}
        required
        defaultValue={environment.replicas}
        hint={withDefault('Of the live revision.', '1')}
      />
      <TimeInput
        name="drain_s"
        label="Drain time"
        min={0}
        max={3600}
        seconds={environment.drain_s}
        hint={withDefault('How long an instance may finish its requests.', secondsText(defaults.drain_s))}
      />
      <Input
        name="retention"
        label="Revisions kept"
        type="number"
        min={1}
        max={100}
        required
        defaultValue={environment.retention}
        hint={withDefault('So many earlier ones can be rolled back to.', String(defaults.retention))}
      />
    </Group>
  );
}

function Network(props: EnvironmentProps) {
  const { environment } = props;
  const { health_check: check } = environment;
  const checks = (name: 'healthy_after' | 'unhealthy_after', label: string, hint: string) => (
    <Input
      name={`health_check.${name}`}
      label={label}
      type="number"
      min={1}
      max={10}
      required
      unit="checks"
      defaultValue={check[name]}
      hint={withDefault(hint, String(defaults.health_check[name]))}
    />
  );
  const time = (name: 'interval_s' | 'timeout_s' | 'start_timeout_s', label: string, max: number, hint: string) => (
    <TimeInput
      name={`health_check.${name}`}
      label={label}
      min={1}
      max={max}
      seconds={check[name]}
      hint={withDefault(hint, secondsText(defaults.health_check[name]))}
    />
  );
  return (
    <Group
      {...props}
      title="Port and health check"
      about="How an instance is reached, and when it counts as healthy."
      waits
      changesOf={(data) => {
        const port = numberField(data, 'port');
        return {
          // One that was never set follows the image: it stays so unless somebody changes it.
          ...(port !== undefined && port !== environment.port && { port }),
          health_check: {
            path: textField(data, 'health_check.path') ?? null,
            interval_s: secondsField(data, 'health_check.interval_s'),
            timeout_s: secondsField(data, 'health_check.timeout_s'),
            start_timeout_s: secondsField(data, 'health_check.start_timeout_s'),
            healthy_after: numberField(data, 'health_check.healthy_after'),
            unhealthy_after: numberField(data, 'health_check.unhealthy_after'),
          },
        } as UpdateEnvironment;
      }}
    >
      <Input
        name="port"
        label="Port"
        type="number"
        min={1}
        max={65_535}
        required
        defaultValue={environment.port}
        hint="Given to the instance as PORT. Default: the only port that the image exposes, else 8080."
      />
      <Input
        name="health_check.path"
        label="Path"
        placeholder="/healthz"
        pattern="/[!-~]*"
        title="must begin with /"
        defaultValue={check.path ?? ''}
        hint="Healthy is an answer from 200 to 399. Default: empty, a TCP connection is enough."
      />
      {time('interval_s', 'Interval', 300, 'Between two checks.')}
      {time('timeout_s', 'Timeout', 60, 'What a check may take.')}
      {checks('healthy_after', 'Healthy after', 'Good ones in a row.')}
      {checks('unhealthy_after', 'Unhealthy after', 'Bad ones in a row.')}
      {time('start_timeout_s', 'Startup timeout', 3600, 'What a new instance has to become healthy.')}
    </Group>
  );
}

function Resources(props: EnvironmentProps) {
  const { resources } = props.environment;
  return (
    <Group
      {...props}
      title="Resources"
      about="What each instance may use."
      waits
      changesOf={(data) => ({
        resources: { memory_mb: numberField(data, 'resources.memory_mb'), cpus: numberField(data, 'resources.cpus') },
      })}
    >
      <Input
        name="resources.memory_mb"
        label="Memory"
        type="number"
        min={16}
        max={262_144}
        required
        unit="MiB"
        defaultValue={resources.memory_mb}
        hint={withDefault('One that needs more is killed.', '512 MiB')}
      />
      <Input
        name="resources.cpus"
        label="CPUs"
        type="number"
        min={0.05}
        max={64}
        step={0.01}
        required
        defaultValue={resources.cpus}
        hint={withDefault('One that needs more is slowed down.', '1')}
      />
    </Group>
  );
}

function Canary(props: EnvironmentProps) {
  const { environment } = props;
  const { canary } = environment;
  return (
    <Group
      {...props}
      title="Canary"
      about="How a canary gets from its first share to all requests."
      changesOf={(data) => ({
        auto_rollback: data.has('auto_rollback'),
        canary: {
          advance: textField(data, 'canary.advance') as 'auto' | 'manual',
          steps: (textField(data, 'canary.steps') ?? '')
            .split(/[\s,%]+/)
            .filter(Boolean)
            .map(Number),
          bake_s: secondsField(data, 'canary.bake_s'),
          warmup_s: secondsField(data, 'canary.warmup_s'),
          approval_timeout_s: secondsField(data, 'canary.approval_timeout_s'),
        },
      })}
    >
      <Select
        name="canary.advance"
        label="Promotion"
        defaultValue={canary.advance}
        data-initial={canary.advance}
        options={[
          ['auto', 'Automatic, by its measurements'],
          ['manual', 'Manual, at each step'],
        ]}
        hint="Default: automatic."
      />
      <Input
        name="canary.steps"
        label="Further steps"
        unit="%"
        placeholder="25, 50"
        pattern="[0-9 ,%]*"
        title="must be shares in percent, rising, as in 25, 50"
        defaultValue={canary.steps.join(', ')}
        hint="After the first share, rising. Default: none, from the first share to all."
      />
      <TimeInput
        name="canary.bake_s"
        label="Time at each step"
        min={1}
        max={86_400}
        seconds={canary.bake_s}
        hint={withDefault('So long it is observed.', secondsText(defaults.canary.bake_s))}
      />
      <TimeInput
        name="canary.warmup_s"
        label="Warm-up"
        min={0}
        max={3600}
        seconds={canary.warmup_s}
        hint={withDefault(
          'The beginning of a step, which does not count for latency.',
          secondsText(defaults.canary.warmup_s),
        )}
      />
      <TimeInput
        name="canary.approval_timeout_s"
        label="Wait for a manual promotion"
        min={1}
        max={2_592_000}
        seconds={canary.approval_timeout_s}
        hint={withDefault('After that it is undone.', secondsText(defaults.canary.approval_timeout_s))}
      />
      <Check
        name="auto_rollback"
        defaultChecked={environment.auto_rollback}
        label="Undo a canary that fails its analysis. Without this it is paused."
      />
    </Group>
  );
}

const percentOf = (fraction: number): number => Math.round(fraction * 1e6) / 1e4;

function Analysis(props: EnvironmentProps) {
  const { canary } = props.environment as Environment;
  return (
    <Group
      {...props}
      title="Canary analysis"
      about="What a canary must not exceed. It is also compared with the live revision."
      changesOf={(data) => ({
        canary: {
          min_requests: numberField(data, 'canary.min_requests'),
          max_error_rate: fractionField(data, 'canary.max_error_rate'),
          max_client_error_rate: fractionField(data, 'canary.max_client_error_rate') ?? null,
          max_p95_ms: numberField(data, 'canary.max_p95_ms') ?? null,
          on_inconclusive: textField(data, 'canary.on_inconclusive') as 'promote' | 'abort' | 'hold',
        },
      })}
    >
      <Input
        name="canary.max_error_rate"
        label="Maximum error rate"
        type="number"
        min={0}
        max={100}
        step="any"
        required
        unit="%"
        defaultValue={percentOf(canary.max_error_rate)}
        hint={withDefault('Answers with 5xx.', '5 %')}
      />
      <Input
        name="canary.max_client_error_rate"
        label="Maximum rate of 4xx"
        type="number"
        min={0}
        max={100}
        step="any"
        unit="%"
        defaultValue={canary.max_client_error_rate === null ? '' : percentOf(canary.max_client_error_rate)}
        hint="Default: empty, 4xx are shown and not judged."
      />
      <Input
        name="canary.max_p95_ms"
        label="Maximum p95 latency"
        type="number"
        min={1}
        max={600_000}
        unit="ms"
        defaultValue={canary.max_p95_ms ?? ''}
        hint="Default: empty, only compared with the live revision."
      />
      <Input
        name="canary.min_requests"
        label="Minimum requests"
        type="number"
        min={0}
        max={1_000_000}
        required
        defaultValue={canary.min_requests}
        hint={withDefault('Fewer do not make a canary good.', count(defaults.canary.min_requests))}
      />
      <Select
        name="canary.on_inconclusive"
        label="If nothing is proved"
        defaultValue={canary.on_inconclusive}
        data-initial={canary.on_inconclusive}
        options={[
          ['promote', 'Promote it'],
          ['abort', 'Undo it'],
          ['hold', 'Pause it'],
        ]}
        hint="Default: promote it."
      />
    </Group>
  );
}

// Alerts that fired and the rules behind them: of a project, or of one of its environments.
import { useMemo } from 'react';
import type { Alert, AlertRule, Metrics } from '../../../../src/client/index.ts';
import { useEnvironment } from '../../environments.ts';
import { milliseconds, percent, perSecond, secondsText } from '../../format.ts';
import { useCan, useSignedIn } from '../../session.ts';
import { useList, useRead } from '../../use-read.ts';
import { Sparkline } from '../charts/sparkline.tsx';
import { TimeChart } from '../charts/time-chart.tsx';
import { toneIn } from '../charts/traffic-charts.tsx';
import { Badge } from '../display/badge.tsx';
import { Ago } from '../display/time.tsx';
import { ActionButton, ConfirmButton } from '../forms/actions.tsx';
import { DialogButton } from '../forms/dialog.tsx';
import { EditRule, type Metric, NewRule, nameOf } from '../forms/rule-forms.tsx';
import { Empty, More, Shown } from '../layout/states.tsx';
import { Table } from '../layout/table.tsx';

const formats: Partial<Record<Metric, (value: number) => string>> = {
  error_rate: percent,
  p95_ms: milliseconds,
  request_rate: perSecond,
};
const plotted = { error_rate: 0.01, p95_ms: 10, request_rate: 1 };
const isPlotted = (metric: Metric): metric is keyof typeof plotted => metric in plotted;

export function conditionOf({ metric, comparator, threshold, window_s, for_s }: AlertRule): string {
  if (metric === 'external') return 'Fired by Alertmanager';
  const limit = (formats[metric] ?? String)(threshold);
  const sign = comparator === 'gt' ? 'above' : 'below';
  const over = isPlotted(metric) || metric === 'restarts' ? ` over ${secondsText(window_s)}` : '';
  return `${nameOf.get(metric)} ${sign} ${limit}${over}${for_s > 0 ? `, for ${secondsText(for_s)}` : ''}`;
}

export function AlertTable({ items }: { items: Alert[] }) {
  return (
    <Table
      label="Alerts"
      isFlowing
      items={[...items].sort((a, b) => Number(b.state === 'firing') - Number(a.state === 'firing'))}
      keyOf={({ id }) => id}
      columns={[
        { name: 'State', cell: ({ state }) => <Badge state={state} /> },
        {
          name: 'Alert',
          cell: ({ name, severity }) => (
            <>
              <strong>{name}</strong> {severity !== 'info' && <Badge state={severity} />}
            </>
          ),
        },
        {
          name: 'Source',
          cell: ({ environment, revision, hostname }) => [environment, revision, hostname].filter(Boolean).join(' · '),
        },
        { name: 'Message', cell: ({ message }) => message },
        { name: 'Fired', cell: ({ fired_at }) => <Ago at={fired_at} /> },
        { name: 'Resolved', cell: ({ resolved_at }) => resolved_at && <Ago at={resolved_at} /> },
      ]}
    />
  );
}

interface AlertsProps {
  project: string;
  /** Without it: of all environments. */
  environment?: string;
  environments: string[];
}

export function Alerts({ project, environment, environments }: AlertsProps) {
  const can = useCan();
  const where = environment === undefined ? {} : { environment };
  const alerts = useList<Alert>(
    `alerts/${project}/${environment ?? ''}`,
    (client, page) => client.alerts.list(project, { ...page, ...where }).page(),
    { project },
  );
  const rules = useList<AlertRule>(
    `rules/${project}/${environment ?? ''}`,
    (client, page) => client.alertRules.list(project, { ...page, ...where }).page(),
    { project },
  );
  return (
    <>
      <section aria-label="Alerts">
        <Shown of={alerts}>
          {(items) =>
            items.length === 0 ? (
              <Empty title="No alert has fired.">An alert fires when the condition of a rule is met.</Empty>
            ) : (
              <AlertTable items={items} />
            )
          }
        </Shown>
        <More of={alerts} />
      </section>
      <section aria-labelledby="rules">
        <div className="title-row">
          <h2 id="rules">Alert rules</h2>
          {can('alerts:write') && environments.length > 0 && (
            <DialogButton title="New alert rule" label="New rule" className="quiet">
              {(close) => <NewRule project={project} environments={environments} onDone={close} />}
            </DialogButton>
          )}
        </div>
        <Shown of={rules}>
          {(items) =>
            items.length === 0 ? (
              <Empty
                title="No alert rules."
                command={`npx sluice alerts add slow p95_ms --above 800 --for 60 --project ${project}`}
              >
                A rule says when an alert fires.
              </Empty>
            ) : (
              <RuleTable
                project={project}
                rules={items}
                firing={
                  new Set((alerts.data ?? []).filter(({ state }) => state === 'firing').map((alert) => alert.rule_id))
                }
                isNamed={environment === undefined}
              />
            )
          }
        </Shown>
        <More of={rules} />
      </section>
    </>
  );
}

export const EnvironmentAlerts = ({ project, environment }: { project: string; environment: string }) => (
  <Alerts project={project} environment={environment} environments={[environment]} />
);

interface RulesProps {
  project: string;
  rules: AlertRule[];
  /** The ids of those that fire. */
  firing: Set<string | null>;
  /** Whether the names of their environments are shown. */
  isNamed: boolean;
}

function RuleTable({ project, rules, firing, isNamed }: RulesProps) {
  const can = useCan();
  const order = (a: AlertRule, b: AlertRule) =>
    Number(firing.has(b.id)) - Number(firing.has(a.id)) ||
    a.environment.localeCompare(b.environment) ||
    a.name.localeCompare(b.name);
  return (
    <Table
      label="Alert rules"
      isFlowing
      items={[...rules].sort(order)}
      keyOf={({ id }) => id}
      columns={[
        { name: 'Rule', cell: ({ name }) => <strong>{name}</strong> },
        {
          name: 'State',
          cell: ({ id, enabled }) =>
            !enabled ? <Badge state="paused">disabled</Badge> : firing.has(id) ? <Badge state="firing" /> : 'quiet',
        },
        ...(isNamed
          ? [{ name: 'Environment', cell: ({ environment }: AlertRule) => <span className="by">{environment}</span> }]
          : []),
        {
          name: 'Fires on',
          cell: (rule) => `${conditionOf(rule)}${rule.on_canary === 'abort' ? '; aborts a running canary' : ''}`,
        },
        { name: 'Severity', cell: ({ severity }) => <span className="dim by">{severity}</span> },
        {
          name: 'Last hour',
          cell: (rule) =>
            isPlotted(rule.metric) ? <LastHour project={project} rule={rule} metric={rule.metric} /> : null,
        },
        ...(can('alerts:write')
          ? [
              {
                name: 'Commands',
                quiet: true,
                cell: (rule: AlertRule) => <RuleCommands project={project} rule={rule} />,
              },
            ]
          : []),
      ]}
    />
  );
}

function RuleCommands({ project, rule }: { project: string; rule: AlertRule }) {
  const { client } = useSignedIn();
  const { metric } = rule;
  const which = (
    <span className="unseen">
      {' '}
      {rule.name} in {rule.environment}
    </span>
  );
  return (
    <div className="row tight one-line">
      <DialogButton title={`Edit ${rule.name}`} label={<>Edit{which}</>} className="quiet">
        {(close) => (
          <>
            {isPlotted(metric) && <RuleChart project={project} rule={rule} metric={metric} />}
            <EditRule project={project} rule={rule} onDone={close} />
          </>
        )}
      </DialogButton>
      <ActionButton
        run={() => client.alertRules.update(project, rule.id, { enabled: !rule.enabled })}
        done={`${rule.name} is ${rule.enabled ? 'disabled' : 'enabled'}.`}
      >
        {rule.enabled ? 'Disable' : 'Enable'}
        {which}
      </ActionButton>
      <ConfirmButton
        title={`Delete the rule ${rule.name}?`}
        mustType={rule.name}
        about={`It is no longer evaluated in ${rule.environment}. Its firing alerts are resolved.`}
        verb={`Delete ${rule.name}`}
        run={() => client.alertRules.delete(project, rule.id)}
        done={`Deleted the rule ${rule.name}.`}
      >
        Delete
        {which}
      </ConfirmButton>
    </div>
  );
}

const refreshMs = 10_000;

type Plotted = { project: string; rule: AlertRule; metric: keyof typeof plotted };

const useMetrics = (project: string, environment: string) =>
  useRead<Metrics>(`metrics/${project}/${environment}`, (client) => client.metrics.get(project, { environment }), {
    pollMs: () => refreshMs,
  });

/** Of the live revision, with its value now: how near the rule is to firing. */
function LastHour({ project, rule, metric }: Plotted) {
  const where = useEnvironment(project, rule.environment);
  const { data } = useMetrics(project, rule.environment);
  const live = data?.series.find(({ revision }) => revision === where.data?.active_revision);
  const values = live?.points.map((point) => point[metric]) ?? [];
  const last = values.findLast((value) => value !== null);
  if (last == null) return null;
  const format = formats[metric]!;
  return (
    <span className="row tight requests">
      <Sparkline
        values={values.map((value) => value ?? 0)}
        label={`${nameOf.get(metric)} of the last hour, ${format(last)} at last`}
      />
      <span className="number">{format(last)}</span>
    </span>
  );
}

function RuleChart({ project, rule, metric }: Plotted) {
  const where = useEnvironment(project, rule.environment);
  const { data } = useMetrics(project, rule.environment);
  const times = useMemo(() => (data?.series[0]?.points ?? []).map(({ at }) => Date.parse(at) / 1000), [data]);
  const lines = useMemo(
    () =>
      (data?.series ?? [])
        .slice(0, 3)
        .reverse()
        .map(({ revision, points }) => ({
          name: revision,
          tone: where.data ? toneIn(where.data)(revision) : ('other' as const),
          values: points.map((point) => point[metric]),
        })),
    [data, metric, where.data],
  );
  if (times.length === 0) return null;
  const format = formats[metric]!;
  return (
    <TimeChart
      title={`${nameOf.get(metric)}, last hour`}
      times={times}
      lines={lines}
      format={format}
      atLeast={Math.max(plotted[metric], rule.threshold * 1.2)}
      {...(metric === 'error_rate' && { atMost: 1 })}
      threshold={{ value: rule.threshold, name: format(rule.threshold) }}
    />
  );
}

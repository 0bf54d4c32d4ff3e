// Alert rules, each with a chart of its metric and threshold.
import type { AlertRule, Metrics } from '../../../../src/client/index.ts';
import { useSignedIn } from '../../session.ts';
import { useRead } from '../../use-read.ts';
import { Chart, milliseconds, percent, perSecond } from '../charts/chart.tsx';
import { refreshMs, seriesOf } from '../charts/metric-charts.tsx';
import { Badge } from '../display/badge.tsx';
import { duration } from '../display/time.tsx';
import { ActionButton, ConfirmButton } from '../forms/actions.tsx';
import { EditRule, type Metric, nameOf } from '../forms/rule-forms.tsx';

const formats: Partial<Record<Metric, (value: number) => string>> = {
  error_rate: percent,
  p95_ms: milliseconds,
  request_rate: perSecond,
};
const plotted = { error_rate: 0.05, p95_ms: 10, request_rate: 1 };
export const isPlotted = (metric: Metric): metric is keyof typeof plotted => metric in plotted;

function conditionOf({ metric, comparator, threshold, window_s, for_s }: AlertRule): string {
  if (metric === 'external') return 'Fired by Alertmanager';
  const limit = (formats[metric] ?? String)(threshold);
  const sign = comparator === 'gt' ? 'above' : 'below';
  const over = isPlotted(metric) || metric === 'restarts' ? ` over ${duration(window_s)}` : '';
  return `${nameOf.get(metric)} ${sign} ${limit}${over}${for_s > 0 ? `, for ${duration(for_s)}` : ''}`;
}

interface RuleProps {
  project: string;
  rule: AlertRule;
  mayChange: boolean;
}

export function RuleCard({ project, rule, mayChange }: RuleProps) {
  const { client } = useSignedIn();
  const { metric } = rule;
  return (
    <li className="card">
      <div className="title-row">
        <h3>{rule.name}</h3>
        <p className="row">
          <Badge state="calm">{rule.environment}</Badge>
          <Badge state={rule.severity} />
          {!rule.enabled && <Badge state="paused">disabled</Badge>}
        </p>
      </div>
      <p className="small">
        {conditionOf(rule)}.{rule.on_canary === 'abort' && ' Aborts a running canary.'}
      </p>
      {isPlotted(metric) && <RuleChart project={project} rule={rule} metric={metric} />}
      {mayChange && (
        <div className="row">
          <ActionButton run={() => client.alertRules.update(project, rule.id, { enabled: !rule.enabled })}>
            {rule.enabled ? 'Disable' : 'Enable'}
            <span className="unseen">
              {' '}
              {rule.name} in {rule.environment}
            </span>
          </ActionButton>
          <ConfirmButton
            title={`Delete rule ${rule.name}?`}
            about="Its firing alerts are resolved."
            verb="Delete rule"
            run={() => client.alertRules.delete(project, rule.id)}
          >
            Delete
            <span className="unseen">
              {' '}
              {rule.name} in {rule.environment}
            </span>
          </ConfirmButton>
        </div>
      )}
      {mayChange && <EditRule project={project} rule={rule} />}
    </li>
  );
}

function RuleChart({ project, rule, metric }: { project: string; rule: AlertRule; metric: keyof typeof plotted }) {
  const { environment } = rule;
  const metrics = useRead<Metrics>(
    `metrics/${project}/${environment}`,
    (client) => client.metrics.get(project, { environment }),
    { pollMs: () => refreshMs },
  );
  if (!metrics.data) return null;
  return (
    <Chart
      title={`${nameOf.get(metric)}, last hour`}
      series={seriesOf(metrics.data, metric, metrics.data.series[0]?.revision ?? null).slice(-3)}
      format={formats[metric]!}
      atLeast={plotted[metric]}
      threshold={rule.threshold}
    />
  );
}

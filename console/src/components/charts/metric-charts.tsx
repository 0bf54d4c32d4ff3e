// Error rate, latency and requests of the revisions of an environment, over time. Polled while shown: no event announces
// new metrics.
import type { Deployment, Metrics } from '../../../../src/client/index.ts';
import { useRead } from '../../use-read.ts';
import { Empty, Shown } from '../layout/states.tsx';
import { Chart, milliseconds, percent, perSecond, type Series } from './chart.tsx';

export const refreshMs = 5000;
const marginMs = 60_000;

type Point = Metrics['series'][number]['points'][number];

export function seriesOf(
  metrics: Metrics,
  field: 'error_rate' | 'p95_ms' | 'request_rate',
  fresh: string | null,
): Series[] {
  return [...metrics.series].reverse().map(({ revision, points }) => ({
    name: revision,
    fresh: revision === fresh,
    points: points.map((point: Point) => ({ at: point.at, value: point[field] })),
  }));
}

function MetricCharts({ metrics, fresh }: { metrics: Metrics; fresh: string | null }) {
  return (
    <div className="charts">
      <Chart title="Error rate" series={seriesOf(metrics, 'error_rate', fresh)} format={percent} atLeast={0.05} />
      <Chart title="p95 latency" series={seriesOf(metrics, 'p95_ms', fresh)} format={milliseconds} atLeast={10} />
      <Chart title="Request rate" series={seriesOf(metrics, 'request_rate', fresh)} format={perSecond} atLeast={1} />
    </div>
  );
}

export function DeploymentMetrics({ deployment }: { deployment: Deployment }) {
  const { id, project_id: project, environment, revision, previous_revision } = deployment;
  const metrics = useRead(
    `metrics/${id}`,
    async (client) => {
      const ended = deployment.finished_at === null ? null : Date.parse(deployment.finished_at) + marginMs;
      const from = new Date(Date.parse(deployment.created_at) - marginMs).toISOString();
      const to = new Date(Math.min(Date.now(), ended ?? Number.POSITIVE_INFINITY)).toISOString();
      const all = await client.metrics.get(project, { environment, from, to });
      return { ...all, series: all.series.filter((each) => [revision, previous_revision].includes(each.revision)) };
    },
    { pollMs: () => (deployment.finished_at === null ? refreshMs : null) },
  );
  return (
    <section aria-labelledby="metrics">
      <h2 id="metrics">Metrics over time</h2>
      <Shown of={metrics}>
        {(data) =>
          data.series.length === 0 ? (
            <Empty title="No data yet.">Charts appear once the environment’s URL receives requests.</Empty>
          ) : (
            <MetricCharts metrics={data} fresh={revision} />
          )
        }
      </Shown>
    </section>
  );
}

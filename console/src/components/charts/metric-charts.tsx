// Error rate, latency and requests of the revisions of an environment, over time. Read again every few seconds while
// they are looked at: figures have no event.
import type { Deployment, Metrics } from '../../../../src/client/index.ts';
import { useRead } from '../../use-read.ts';
import { Empty, Shown } from '../layout/states.tsx';
import { Chart, milliseconds, percent, perSecond, type Series } from './chart.tsx';

export const refreshMs = 5000;
const aroundMs = 60_000;

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

export function Curves({ metrics, fresh }: { metrics: Metrics; fresh: string | null }) {
  return (
    <div className="charts">
      <Chart title="Error rate" series={seriesOf(metrics, 'error_rate', fresh)} format={percent} atLeast={0.05} />
      <Chart title="Latency, p95" series={seriesOf(metrics, 'p95_ms', fresh)} format={milliseconds} atLeast={10} />
      <Chart title="Requests" series={seriesOf(metrics, 'request_rate', fresh)} format={perSecond} atLeast={1} />
    </div>
  );
}

export function DeploymentCurves({ deployment }: { deployment: Deployment }) {
  const { id, project_id: project, environment, revision, previous_revision } = deployment;
  const metrics = useRead(
    `metrics/${id}`,
    async (client) => {
      const ended = deployment.finished_at === null ? null : Date.parse(deployment.finished_at) + aroundMs;
      const from = new Date(Date.parse(deployment.created_at) - aroundMs).toISOString();
      const to = new Date(Math.min(Date.now(), ended ?? Number.POSITIVE_INFINITY)).toISOString();
      const all = await client.metrics.get(project, { environment, from, to });
      return { ...all, series: all.series.filter((each) => [revision, previous_revision].includes(each.revision)) };
    },
    { pollMs: () => (deployment.finished_at === null ? refreshMs : null) },
  );
  return (
    <section aria-labelledby="curves">
      <h2 id="curves">Both sides</h2>
      <Shown of={metrics}>
        {(data) =>
          data.series.length === 0 ? (
            <Empty title="Nothing was measured yet.">
              Curves are drawn from requests to the environment’s address. Send some.
            </Empty>
          ) : (
            <Curves metrics={data} fresh={revision} />
          )
        }
      </Shown>
    </section>
  );
}

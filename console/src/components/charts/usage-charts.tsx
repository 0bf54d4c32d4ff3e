// Memory and CPU of the instances of an environment, over the last hour. Polled while shown: no event announces
// measurements.
import type { Environment, Usage } from '../../../../src/client/index.ts';
import { useRead } from '../../use-read.ts';
import { Empty, Shown } from '../layout/states.tsx';
import { Chart, type Series } from './chart.tsx';

const refreshMs = 10_000;
/** More lines than these cannot be told apart. */
const maxShown = 10;
const mebibyte = 1024 * 1024;

const words = { absent: 'not measured', thresholdName: 'limit' };

type Instance = Usage['series'][number];

const bytes = (value: number): string => `${Math.round(value / mebibyte)} MiB`;
const cpus = (value: number): string => `${Number(value.toFixed(value < 0.1 ? 3 : 2))} CPU`;

function seriesOf(instances: Instance[], field: 'memory_bytes' | 'cpus', live: string | null): Series[] {
  return instances.map(({ instance, revision, points }) => ({
    name: `${revision} ${instance.slice(-6)}`,
    fresh: revision !== live,
    points: points.map((point) => ({ at: point.at, value: point[field] })),
  }));
}

/** Drawn where it is the same for all. */
function sharedLimit(instances: Instance[], limitOf: (limits: Instance['limits']) => number): number | null {
  const limits = new Set(instances.map((each) => limitOf(each.limits)));
  return limits.size === 1 ? [...limits][0]! : null;
}

export function UsageCharts({ project, environment }: { project: string; environment: Environment }) {
  const { name, active_revision: live } = environment;
  const usage = useRead<Usage>(`usage/${project}/${name}`, (client) => client.environments.usage(project, name), {
    pollMs: () => refreshMs,
  });
  return (
    <section aria-labelledby="usage">
      <h2 id="usage">Memory and CPU</h2>
      <Shown of={usage}>
        {({ series }) => {
          const shown = series.slice(0, maxShown).reverse();
          if (shown.length === 0) {
            return (
              <Empty title="No measurements.">
                Instances are measured every ten seconds, where the engine can say what they use. The stand-in cannot.
              </Empty>
            );
          }
          const memoryLimit = sharedLimit(shown, ({ memory_mb }) => memory_mb * mebibyte);
          return (
            <>
              {series.length > maxShown && <p className="small">The newest {maxShown} instances.</p>}
              <div className="charts">
                <Chart
                  title="Memory"
                  series={seriesOf(shown, 'memory_bytes', live)}
                  format={bytes}
                  atLeast={mebibyte}
                  threshold={memoryLimit}
                  {...words}
                />
                <Chart
                  title="CPU"
                  series={seriesOf(shown, 'cpus', live)}
                  format={cpus}
                  atLeast={0.01}
                  threshold={sharedLimit(shown, (limits) => limits.cpus)}
                  {...words}
                />
              </div>
            </>
          );
        }}
      </Shown>
    </section>
  );
}

// Errors, latency and requests of an environment's revisions, and what its instances use. Polled while shown: no event
// announces new measurements.
import { useMemo } from 'react';
import type { DeploymentSummary, Environment, Metrics, Usage } from '../../../../src/client/index.ts';
import { bytes, cpus, mebibyte, milliseconds, percent, perSecond } from '../../format.ts';
import { useRead } from '../../use-read.ts';
import { wasUndone } from '../display/health.tsx';
import { Empty, Shown } from '../layout/states.tsx';
import { type Line, type Mark, TimeChart, type Tone } from './time-chart.tsx';

export const ranges = { '1h': 3600, '6h': 21_600, '24h': 86_400, '7d': 604_800 } as const;
export type Range = keyof typeof ranges;
const rangeNames: Record<Range, string> = { '1h': '1 h', '6h': '6 h', '24h': '24 h', '7d': '7 d' };

const refreshMs: Record<Range, number> = { '1h': 5000, '6h': 20_000, '24h': 60_000, '7d': 120_000 };
/** More lines than these cannot be told apart. */
const maxRevisions = 4;
const maxInstances = 8;

/** As large as the charts that will stand there. */
export const ChartsSkeleton = () => (
  <div className="charts" aria-hidden="true">
    <div className="skeleton-chart" />
    <div className="skeleton-chart" />
    <div className="skeleton-chart" />
  </div>
);

export function RangePicker({ range, onChange }: { range: Range; onChange(range: Range): void }) {
  return (
    <fieldset className="segmented">
      <legend className="unseen">Period</legend>
      {(Object.keys(ranges) as Range[]).map((each) => (
        <label key={each}>
          <input type="radio" name="range" checked={each === range} onChange={() => onChange(each)} />
          <span>{rangeNames[each]}</span>
        </label>
      ))}
    </fieldset>
  );
}

const secondsOf = (at: string): number => Date.parse(at) / 1000;

type Field = 'error_rate' | 'p95_ms' | 'request_rate';

function linesOf(metrics: Metrics, field: Field, toneOf: (revision: string) => Tone): Line[] {
  return metrics.series
    .slice(0, maxRevisions)
    .reverse()
    .map(({ revision, points }) => ({
      name: revision,
      tone: toneOf(revision),
      values:
        field === 'request_rate'
          ? fromFirst(points.map((point) => point.request_rate))
          : points.map((point) => point[field]),
    }));
}

/** A line begins with its first request, not with the zeros before it. */
function fromFirst(rates: number[]): (number | null)[] {
  const first = rates.findIndex((rate) => rate > 0);
  return rates.map((rate, index) => (index < first - 1 ? null : rate));
}

interface ChartsProps {
  metrics: Metrics;
  toneOf(revision: string): Tone;
  marks?: Mark[];
  group: string;
  endedAt?: number | null;
}

export function TrafficChartRow({ metrics, toneOf, marks = [], group, endedAt = null }: ChartsProps) {
  const times = useMemo(() => (metrics.series[0]?.points ?? []).map(({ at }) => secondsOf(at)), [metrics]);
  const lines = useMemo(
    () => ({
      errors: linesOf(metrics, 'error_rate', toneOf),
      latency: linesOf(metrics, 'p95_ms', toneOf),
      requests: linesOf(metrics, 'request_rate', toneOf),
    }),
    [metrics, toneOf],
  );
  const shared = { times, marks, group, endedAt };
  return (
    <div className="charts">
      <TimeChart title="Errors" lines={lines.errors} format={percent} atLeast={0.01} atMost={1} {...shared} />
      <TimeChart title="p95 latency" lines={lines.latency} format={milliseconds} atLeast={10} {...shared} />
      <TimeChart title="Requests" lines={lines.requests} format={perSecond} atLeast={1} {...shared} />
    </div>
  );
}

/** When deployments of the period began to get requests. */
export function marksOf(deployments: DeploymentSummary[]): Mark[] {
  return deployments
    .filter(({ state, failure }) => state !== 'failed' || (failure !== null && wasUndone(failure.code)))
    .map(({ revision, created_at, canary }) => ({
      at: secondsOf(created_at),
      text: canary ? `${revision} gets ${canary.percent} %` : revision,
    }))
    .sort((a, b) => a.at - b.at);
}

interface EnvironmentChartsProps {
  project: string;
  environment: Environment;
  range: Range;
  marks: Mark[];
  /** The revision that was deployed last. */
  tried: string | null;
}

/** The live revision, and the one that is or was tried last. */
export const toneIn =
  ({ active_revision, traffic }: Environment, tried: string | null = null) =>
  (revision: string): Tone =>
    revision === active_revision || (active_revision === null && traffic.length <= 1)
      ? 'stable'
      : revision === tried || traffic.some((share) => share.revision === revision)
        ? 'canary'
        : 'other';

const shortestS = 600;

/** An hour of which 50 minutes are empty shows little: what is younger is shown from its beginning. */
const beginOf = ({ created_at }: Environment, seconds: number): string => {
  const nowMs = Date.now();
  const bornMs = Math.min(Date.parse(created_at), nowMs - shortestS * 1000);
  return new Date(Math.max(nowMs - seconds * 1000, bornMs)).toISOString();
};

export function TrafficCharts({ project, environment, range, marks, tried }: EnvironmentChartsProps) {
  const { name } = environment;
  const metrics = useRead<Metrics>(
    `metrics/${project}/${name}/${range}`,
    (client) =>
      client.metrics.get(project, {
        environment: name,
        from: beginOf(environment, ranges[range]),
      }),
    { pollMs: () => refreshMs[range] },
  );
  const key = `${tried} ${environment.active_revision} ${environment.traffic.map(({ revision }) => revision).join(' ')}`;
  // biome-ignore lint/correctness/useExhaustiveDependencies: as long as the same revisions serve, the colours stay
  const toneOf = useMemo(() => toneIn(environment, tried), [key]);
  return (
    <Shown of={metrics} skeleton={<ChartsSkeleton />}>
      {(data) =>
        data.series.length === 0 ? (
          <Empty title="No requests in this period.">
            Charts appear once somebody visits{' '}
            <a href={environment.url} target="_blank" rel="noreferrer">
              {environment.url}
            </a>
            .
          </Empty>
        ) : (
          <TrafficChartRow metrics={data} toneOf={toneOf} marks={marks} group={`traffic-${name}`} />
        )
      }
    </Shown>
  );
}

type Measured = Usage['series'][number];

function usageLines(instances: Measured[], field: 'memory_bytes' | 'cpus', toneOf: (revision: string) => Tone): Line[] {
  return instances.map(({ instance, revision, points }) => ({
    name: `${revision} ${instance.slice(-4)}`,
    tone: toneOf(revision),
    values: points.map((point) => point[field]),
  }));
}

/** Drawn where it is the same for all. */
function sharedLimit(instances: Measured[], limitOf: (limits: Measured['limits']) => number): number | null {
  const limits = new Set(instances.map((each) => limitOf(each.limits)));
  return limits.size === 1 ? [...limits][0]! : null;
}

export const useUsage = (project: string, environment: Environment, range: Range) =>
  useRead<Usage>(
    `usage/${project}/${environment.name}/${range}`,
    (client) => {
      const from = beginOf(environment, Math.min(ranges[range], ranges['24h']));
      return client.environments.usage(project, environment.name, { from });
    },
    { pollMs: () => Math.max(10_000, refreshMs[range]) },
  );

export function UsageCharts({ project, environment, range, marks, tried }: EnvironmentChartsProps) {
  const { name } = environment;
  const { data } = useUsage(project, environment, range);
  const shown = useMemo(() => (data?.series ?? []).slice(0, maxInstances).reverse(), [data]);
  const times = useMemo(() => (shown[0]?.points ?? []).map(({ at }) => secondsOf(at)), [shown]);
  const toneOf = toneIn(environment, tried);
  // Engines that cannot measure leave nothing to show, and nothing is missing.
  if (shown.length === 0) return null;
  const memoryLimit = sharedLimit(shown, ({ memory_mb }) => memory_mb * mebibyte);
  const cpuLimit = sharedLimit(shown, (limits) => limits.cpus);
  const shared = { times, marks, group: `traffic-${name}` };
  return (
    <div className="charts two">
      <TimeChart
        title="Memory"
        lines={usageLines(shown, 'memory_bytes', toneOf)}
        format={bytes}
        atLeast={mebibyte}
        unit={mebibyte}
        threshold={memoryLimit === null ? null : { value: memoryLimit, name: `limit ${bytes(memoryLimit)}` }}
        {...shared}
      />
      <TimeChart
        title="CPU"
        lines={usageLines(shown, 'cpus', toneOf)}
        format={cpus}
        atLeast={0.05}
        threshold={cpuLimit === null ? null : { value: cpuLimit, name: `limit ${cpus(cpuLimit)}` }}
        {...shared}
      />
    </div>
  );
}

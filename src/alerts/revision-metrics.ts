// The metrics of deployed revisions at /metrics: what the router of this process counted, what instances use, and
// gauges read from the database.
import { sql } from 'kysely';
import { Counter, Gauge, type Histogram, Registry } from 'prom-client';
import { severities } from '../contract/alert-rules.ts';
import { revisionId } from '../contract/references.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { latencyBoundsMs } from '../traffic/latency.ts';
import type { Measurement } from '../traffic/measurements.ts';
import { type RevisionTotal, RevisionTotals, revisionKey } from './revision-totals.ts';

/** /metrics needs no token and may be requested at any rate, so the text is produced at most this often. */
const cachedForMs = 5000;
/** Per metric. If there are more, the newest are shown. */
const maxSeries = 5000;

export class RevisionMetrics {
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #totals = new RevisionTotals();
  readonly #registry = new Registry();
  #latest: { at: number; text: Promise<string> } | null = null;

  constructor({ db, clock }: { db: Db; clock: Clock }) {
    this.#db = db;
    this.#clock = clock;
    registerRouterMetrics(this.#registry, this.#totals);
    registerGauges(this.#registry, db);
    registerUsageMetrics(this.#registry, { db, clock }, maxSeries);
  }

  note(router: string, measurements: Measurement[]): void {
    this.#totals.note(router, measurements);
  }

  /**
   * In Prometheus' text format. If the database does not answer, the gauges have no series and the rest is complete.
   */
  text(): Promise<string> {
    const nowMs = this.#clock.now();
    if (!this.#latest || Math.abs(nowMs - this.#latest.at) >= cachedForMs)
      this.#latest = { at: nowMs, text: this.#produce(nowMs) };
    return this.#latest.text;
  }

  async #produce(nowMs: number): Promise<string> {
    const routed = await listRouted(this.#db).catch(() => null);
    if (routed !== null) this.#totals.forgetUnrouted(routed, nowMs);
    return this.#registry.metrics();
  }
}

interface Sample {
  labels: Record<string, string>;
  value: number;
}

function registerGauges(registry: Registry, db: Db): void {
  const gauge = (name: string, help: string, labelNames: string[], read: (db: Db) => Promise<Sample[]>) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        const samples = await read(db).catch(() => []);
        this.reset();
        for (const { labels, value } of samples) this.set(labels, value);
      },
    });
  const ofEnvironment = ['project', 'environment'];
  gauge(
    'sluice_healthy_instances',
    'Healthy instances of the active revision, by environment.',
    ofEnvironment,
    countHealthy,
  );
  gauge('sluice_alerts_firing', 'Alerts that are firing, by severity.', ['severity'], countFiring);
  gauge(
    'sluice_certificate_not_after_timestamp_seconds',
    'When the certificate of a domain ends.',
    [...ofEnvironment, 'hostname'],
    listCertificates,
  );
}

const selectActive = (db: Db) =>
  db
    .selectFrom('revision as v')
    .select(['v.project_id', 'v.environment', 'v.number as revision'])
    .where(sql<boolean>`v.state = 'active'`)
    .orderBy('v.project_id', 'desc')
    .limit(maxSeries);

/** Keys of the revisions that get traffic, or will when their rollout reaches that step. */
async function listRouted(db: Db): Promise<Set<string>> {
  const active = await selectActive(db).execute();
  const inProgress = await db
    .selectFrom('deployment')
    .select(['project_id', 'environment', 'revision'])
    .where('finished_at', 'is', null)
    .execute();
  return new Set([...active, ...inProgress].map((row) => revisionKey(row.project_id, row.environment, row.revision)));
}

async function countHealthy(db: Db): Promise<Sample[]> {
  const rows = await selectActive(db)
    .select((e) =>
      e
        .selectFrom('instance as i')
        .select((i) => i.fn.countAll().as('count'))
        .whereRef('i.project_id', '=', 'v.project_id')
        .whereRef('i.environment', '=', 'v.environment')
        .whereRef('i.revision', '=', 'v.number')
        .where('i.state', '=', 'healthy')
        .as('healthy'),
    )
    .execute();
  return rows.map(({ project_id, environment, healthy }) => ({
    labels: { project: project_id, environment },
    value: Number(healthy),
  }));
}

async function countFiring(db: Db): Promise<Sample[]> {
  const rows = await db
    .selectFrom('alert')
    .select((e) => ['severity', e.fn.countAll().as('count')])
    .where('resolved_at', 'is', null)
    .groupBy('severity')
    .execute();
  const counts = new Map(rows.map((row) => [row.severity, Number(row.count)]));
  return severities.map((severity) => ({ labels: { severity }, value: counts.get(severity) ?? 0 }));
}

async function listCertificates(db: Db): Promise<Sample[]> {
  const rows = await db
    .selectFrom('domain')
    .innerJoin('certificate', 'certificate.id', 'domain.certificate_id')
    .select(['domain.project_id', 'domain.environment', 'domain.hostname', 'certificate.not_after'])
    .orderBy('domain.id', 'desc')
    .limit(maxSeries)
    .execute();
  return rows.map(({ project_id, environment, hostname, not_after }) => ({
    labels: { project: project_id, environment, hostname },
    value: Math.floor(not_after / 1000),
  }));
}

/** A subset of the router's bounds: enough for a quantile, and few enough for many revisions. */
const shownBoundsMs = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];

const revisionLabels = ['project', 'environment', 'revision'] as const;
const ofRouter = 'by the router of this process, by revision';

export function registerRouterMetrics(registry: Registry, totals: RevisionTotals): void {
  const counter = (name: string, help: string, countOf: (total: RevisionTotal) => number) =>
    new Counter({
      name,
      help,
      labelNames: revisionLabels,
      registers: [registry],
      collect() {
        this.reset();
        for (const total of totals.list()) this.inc(total.labels, countOf(total));
      },
    });
  counter('sluice_requests_total', `Requests answered ${ofRouter}.`, ({ requests }) => requests);
  counter(
    'sluice_request_errors_total',
    `Answers of 500 or above, or none at all, given ${ofRouter}.`,
    ({ errors }) => errors,
  );
  registerDurations(registry, totals);
}

/**
 * prom-client's Histogram counts observations one by one and cannot take over counts. A registry needs no more of a
 * metric than its name and get(), although its types ask for one of its own classes.
 */
function registerDurations(registry: Registry, totals: RevisionTotals): void {
  const name = 'sluice_request_duration_seconds';
  const help = `Time to the head of the answer, measured ${ofRouter}.`;
  const get = async () => ({
    name,
    help,
    type: 'histogram',
    values: totals.list().flatMap((total) => histogramValues(name, total)),
  });
  registry.registerMetric({ name, get } as unknown as Histogram);
}

function histogramValues(name: string, { labels, latency }: RevisionTotal) {
  const bucket = (le: string, value: number) => ({ metricName: `${name}_bucket`, labels: { ...labels, le }, value });
  const values = [];
  let seen = 0;
  for (const [index, count] of latency.entries()) {
    seen += count;
    const bound = latencyBoundsMs[index];
    if (bound !== undefined && shownBoundsMs.includes(bound)) values.push(bucket(String(bound / 1000), seen));
  }
  return [...values, bucket('+Inf', seen), { metricName: `${name}_count`, labels, value: seen }];
}

/** Three measurements may be missing; then an instance has no series until there is one again. */
const newerThanMs = 45_000;
/** Measurements in that time. */
const measuredPerInstance = 5;

const instanceLabels = ['project', 'environment', 'revision', 'instance'] as const;

function registerUsageMetrics(registry: Registry, { db, clock }: { db: Db; clock: Clock }, maxInstances: number): void {
  let reading: ReturnType<typeof listLatest> | null = null;
  /** Both metrics are collected at the same time: one read serves them. */
  const read = () => {
    reading ??= listLatest(db, clock.now() - newerThanMs, maxInstances)
      .catch(() => [])
      .finally(() => {
        reading = null;
      });
    return reading;
  };
  new Gauge({
    name: 'sluice_instance_memory_bytes',
    help: 'Memory of an instance, without files that are only cached.',
    labelNames: instanceLabels,
    registers: [registry],
    async collect() {
      const latest = await read();
      this.reset();
      for (const { labels, memoryBytes } of latest) this.set(labels, memoryBytes);
    },
  });
  new Counter({
    name: 'sluice_instance_cpu_seconds_total',
    help: 'CPU time that an instance has used since it started.',
    labelNames: instanceLabels,
    registers: [registry],
    async collect() {
      const latest = await read();
      this.reset();
      for (const { labels, cpuMs } of latest) this.inc(labels, cpuMs / 1000);
    },
  });
}

async function listLatest(db: Db, afterMs: number, maxInstances: number) {
  const rows = await db
    .selectFrom('instance_usage as u')
    .innerJoin('instance as i', 'i.id', 'u.instance_id')
    .select(['u.project_id', 'u.environment', 'u.revision', 'u.instance_id', 'u.memory_bytes', 'u.cpu_ms'])
    .where('u.at', '>', afterMs)
    .orderBy('u.at', 'desc')
    .limit(maxInstances * measuredPerInstance)
    .execute();
  const latest = new Map<string, (typeof rows)[number]>();
  for (const row of rows) if (!latest.has(row.instance_id)) latest.set(row.instance_id, row);
  return [...latest.values()].slice(0, maxInstances).map((row) => ({
    labels: {
      project: row.project_id,
      environment: row.environment,
      revision: revisionId(row.revision),
      instance: row.instance_id,
    },
    memoryBytes: row.memory_bytes,
    cpuMs: row.cpu_ms,
  }));
}

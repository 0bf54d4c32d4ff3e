// The metrics of deployed revisions at /metrics: what this process's router counted, and gauges read from the database.
import { sql } from 'kysely';
import { Gauge, Registry } from 'prom-client';
import { severities } from '../contract/alert-rules.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { Measurement } from '../traffic/measure/measurements.ts';
import { registerRouterMetrics } from './router-metrics.ts';
import { revisionKey, Totals } from './totals.ts';
import { registerUsageMetrics } from './usage-metrics.ts';

/** /metrics needs no token and may be requested at any rate, so the text is produced at most this often. */
const freshMs = 5000;
/** Per metric. If there are more, the newest are shown. */
const maxSeries = 5000;

export class Figures {
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #totals = new Totals();
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

  /** In Prometheus' text format. If the database does not answer, the gauges have no series and the rest is complete. */
  text(): Promise<string> {
    const nowMs = this.#clock.now();
    if (!this.#latest || Math.abs(nowMs - this.#latest.at) >= freshMs)
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

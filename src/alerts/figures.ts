// What /metrics tells of the deployed: the router's counters, and gauges read from the database when somebody asks.
import { sql } from 'kysely';
import { severities } from '../contract/alert-rules.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { Measurement } from '../traffic/measure/measurements.ts';
import { expose, type Figure } from './exposition.ts';
import { revisionKey, Totals } from './totals.ts';

/** Anybody may ask, as often as they like: it is worked out this often at most. */
const freshMs = 5000;
/** Of a kind. Where there are more, the newest are shown. */
const maxSeries = 5000;

interface State {
  routed: Set<string>;
  gauges: Figure[];
}

export class Figures {
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #totals = new Totals();
  #told: { at: number; text: Promise<string> } | null = null;

  constructor({ db, clock }: { db: Db; clock: Clock }) {
    this.#db = db;
    this.#clock = clock;
  }

  note(measurements: Measurement[]): void {
    this.#totals.note(measurements);
  }

  text(): Promise<string> {
    const nowMs = this.#clock.now();
    if (!this.#told || Math.abs(nowMs - this.#told.at) >= freshMs) this.#told = { at: nowMs, text: this.#tell(nowMs) };
    return this.#told.text;
  }

  /** Without a database there is still what this process counted. */
  async #tell(nowMs: number): Promise<string> {
    const state = await readState(this.#db).catch(() => null);
    return expose([...this.#totals.figures(state?.routed ?? null, nowMs), ...(state?.gauges ?? [])]);
  }
}

async function readState(db: Db): Promise<State> {
  const active = await listActive(db);
  const coming = await db
    .selectFrom('deployment')
    .select(['project_id', 'environment', 'revision'])
    .where('finished_at', 'is', null)
    .execute();
  return {
    routed: new Set([...active, ...coming].map((row) => revisionKey(row.project_id, row.environment, row.revision))),
    gauges: [
      {
        name: 'sluice_healthy_instances',
        type: 'gauge',
        help: 'Healthy instances of the active revision, by environment.',
        samples: active.map(({ project_id, environment, healthy }) => ({
          labels: { project: project_id, environment },
          value: Number(healthy),
        })),
      },
      {
        name: 'sluice_alerts_firing',
        type: 'gauge',
        help: 'Alerts that are firing, by severity.',
        samples: await countFiring(db),
      },
      {
        name: 'sluice_certificate_not_after_timestamp_seconds',
        type: 'gauge',
        help: 'When the certificate of a domain ends.',
        samples: await listCertificates(db),
      },
    ],
  };
}

async function listActive(db: Db) {
  return db
    .selectFrom('revision as v')
    .select((e) => [
      'v.project_id',
      'v.environment',
      'v.number as revision',
      e
        .selectFrom('instance as i')
        .select((i) => i.fn.countAll().as('count'))
        .whereRef('i.project_id', '=', 'v.project_id')
        .whereRef('i.environment', '=', 'v.environment')
        .whereRef('i.revision', '=', 'v.number')
        .where('i.state', '=', 'healthy')
        .as('healthy'),
    ])
    .where(sql<boolean>`v.state = 'active'`)
    .orderBy('v.project_id', 'desc')
    .limit(maxSeries)
    .execute();
}

async function countFiring(db: Db) {
  const rows = await db
    .selectFrom('alert')
    .select((e) => ['severity', e.fn.countAll().as('count')])
    .where('resolved_at', 'is', null)
    .groupBy('severity')
    .execute();
  const counts = new Map(rows.map((row) => [row.severity, Number(row.count)]));
  return severities.map((severity) => ({ labels: { severity }, value: counts.get(severity) ?? 0 }));
}

async function listCertificates(db: Db) {
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

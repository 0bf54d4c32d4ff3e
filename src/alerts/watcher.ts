// Evaluates every rule periodically: observe → evaluate → write what changed. All state between two evaluations is in
// the database, so a crash only delays the next one. Several processes may evaluate at the same time: if two come to
// the same conclusion, the database accepts it from one of them.
import type { Selectable } from 'kysely';
import type { AlertMetric, Comparator } from '../contract/alert-rules.ts';
import { revisionNumber } from '../contract/references.ts';
import type { Db } from '../db/database.ts';
import { isUnavailable } from '../db/database-errors.ts';
import type { Tables } from '../db/tables.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import type { Loop, Loops } from '../lib/loops.ts';
import {
  evaluateEveryMs,
  isDue,
  measure,
  next,
  noObservation,
  perRevision,
  type Rule,
  type Watch,
} from './evaluate.ts';
import { insertAlertEvents, insertAlerts, lockRule, markResolved, type NewAlert } from './incidents.ts';
import { listWatchedRules, observe, type WatchedRule } from './observe-rules.ts';

interface WatcherParts {
  db: Db;
  clock: Clock;
  ids: IdSource;
  log: Log;
  loops: Loops;
}

interface Findings {
  watches: WatchChange[];
  fire: { rule: WatchedRule; alert: NewAlert }[];
  resolve: FiringAlert[];
}

const atOnce = 8;

export class Watcher {
  readonly #parts: WatcherParts;
  /** When this process began to watch. */
  #since: number;
  #evaluatedAt: number;
  #loop: Loop | null = null;

  constructor(parts: WatcherParts) {
    this.#parts = parts;
    this.#since = parts.clock.now();
    this.#evaluatedAt = this.#since - evaluateEveryMs;
  }

  start(): void {
    this.#loop = this.#parts.loops.start({
      name: 'alerts',
      intervalMs: evaluateEveryMs,
      step: () => this.evaluateDue(),
    });
  }

  async stop(): Promise<void> {
    await this.#loop?.stop();
  }

  /** Evaluates the rules that are due. */
  async evaluateDue(): Promise<void> {
    const { db, clock } = this.#parts;
    const nowMs = clock.now();
    this.#since = Math.min(this.#since, nowMs);
    const rules = (await listWatchedRules(db)).filter((rule) => isDue(rule, this.#evaluatedAt, nowMs));
    const { watches, fire, resolve } = await this.#evaluate(rules, nowMs);
    this.#evaluatedAt = nowMs;
    await writeWatches(db, watches);
    await this.#writeAll([
      ...fire.map((one) => () => this.#fire(one.rule, one.alert)),
      ...resolve.map((one) => () => this.#resolve(one)),
    ]);
  }

  async #evaluate(rules: WatchedRule[], nowMs: number): Promise<Findings> {
    const { db } = this.#parts;
    const firing = await listFiring(db);
    const watches = await listWatches(db);
    const observations = await observe(db, rules, nowMs);
    const found: Findings = { watches: [], fire: [], resolve: firing.filter(({ orphan }) => orphan) };
    const firingOf = Map.groupBy(firing, (alert) => alert.rule_id);
    const watchesOf = Map.groupBy(watches, (watch) => watch.rule_id);
    for (const rule of rules) {
      const known = observations.get(rule.id);
      const alerts = firingOf.get(rule.id) ?? [];
      const waits = watchesOf.get(rule.id) ?? [];
      const subjects = new Set([...alerts, ...waits].map(({ subject }) => subject));
      for (const subject of known?.keys() ?? []) subjects.add(subject);
      for (const subject of subjects) {
        const alert = alerts.find((one) => one.subject === subject);
        const row = waits.find((one) => one.subject === subject);
        const before: Watch | null = row ? { holds: row.holds === 1, since: row.since } : null;
        const value = measure(rule, known?.get(subject) ?? noObservation, nowMs, nowMs - this.#since);
        const { watch, act } = next(before, alert !== undefined, value, rule, nowMs);
        if (watch?.holds !== before?.holds || watch?.since !== before?.since) {
          found.watches.push({ rule_id: rule.id, subject, watch });
        }
        if (act === 'fire') found.fire.push({ rule, alert: alertOf(rule, subject, value!) });
        if (act === 'resolve') found.resolve.push(alert!);
      }
    }
    return found;
  }

  async #fire(rule: WatchedRule, alert: NewAlert): Promise<void> {
    const { db } = this.#parts;
    await db.transaction().execute(async (tx) => {
      if (!(await lockRule(tx, rule))) return;
      const { account_id } = await tx
        .selectFrom('project')
        .select('account_id')
        .where('id', '=', rule.project_id)
        .executeTakeFirstOrThrow();
      await insertAlertEvents(tx, this.#parts, await insertAlerts(tx, this.#parts, account_id, [alert]));
    });
  }

  async #resolve({ id }: FiringAlert): Promise<void> {
    await this.#parts.db.transaction().execute(async (tx) => {
      await insertAlertEvents(tx, this.#parts, await markResolved(tx, this.#parts, { ids: [id] }));
    });
  }

  /**
   * A write that fails does not hold up the others; the next evaluation tries it again. A database that is away ends
   * them all: waiting for it once per write would take for ever.
   */
  async #writeAll(writes: (() => Promise<void>)[]): Promise<void> {
    for (let i = 0; i < writes.length; i += atOnce) {
      const done = await Promise.allSettled(writes.slice(i, i + atOnce).map((write) => write()));
      for (const result of done) {
        if (result.status === 'fulfilled') continue;
        if (isUnavailable(result.reason)) throw result.reason;
        this.#parts.log.error({ err: result.reason }, 'failed to write an alert');
      }
    }
  }
}

function alertOf(rule: WatchedRule, subject: string, value: number): NewAlert {
  return {
    rule,
    subject,
    message: alertMessage(rule, subject, value),
    revision: perRevision(rule.metric) ? revisionNumber(subject) : null,
    hostname: rule.metric === 'certificate_days_left' ? subject : null,
    value,
  };
}

interface FiringAlert {
  id: string;
  project_id: string;
  environment: string;
  rule_id: string;
  subject: string;
  /** Its rule is deleted or disabled. */
  orphan: boolean;
}

/** All but those of enabled external rules, which Alertmanager resolves. */
async function listFiring(db: Db): Promise<FiringAlert[]> {
  const rows = await db
    .selectFrom('alert as a')
    .leftJoin('alert_rule as r', 'r.id', 'a.rule_id')
    .select(['a.id', 'a.project_id', 'a.environment', 'a.rule_id', 'a.subject', 'r.enabled'])
    .where('a.resolved_at', 'is', null)
    .where((e) => e.or([e('r.id', 'is', null), e('r.enabled', '=', 0), e('r.metric', '!=', 'external')]))
    .execute();
  return rows.map(({ enabled, ...row }) => ({ ...row, orphan: enabled !== 1 }));
}

async function listWatches(db: Db): Promise<Selectable<Tables['alert_watch']>[]> {
  return db.selectFrom('alert_watch').selectAll().execute();
}

interface WatchChange {
  rule_id: string;
  subject: string;
  /** null: there is nothing left to wait for. */
  watch: Watch | null;
}

const watchesAtOnce = 200;

/** If two processes see the same condition begin, the earlier time counts. */
async function writeWatches(db: Db, changes: WatchChange[]): Promise<void> {
  for (let i = 0; i < changes.length; i += watchesAtOnce) {
    const part = changes.slice(i, i + watchesAtOnce);
    const gone = part.filter(({ watch }) => watch === null);
    const rows = part.flatMap(({ rule_id, subject, watch }) =>
      watch ? [{ rule_id, subject, holds: watch.holds ? 1 : 0, since: watch.since }] : [],
    );
    await db.transaction().execute(async (tx) => {
      if (gone.length > 0) await deleteWatches(tx, gone);
      if (rows.length > 0) await upsertWatches(tx, rows);
    });
  }
}

async function deleteWatches(tx: Db, gone: WatchChange[]): Promise<void> {
  await tx
    .deleteFrom('alert_watch')
    .where((e) => e.or(gone.map(({ rule_id, subject }) => e.and({ rule_id, subject }))))
    .execute();
}

/** Skips rules that were deleted since they were read. */
async function upsertWatches(tx: Db, rows: Tables['alert_watch'][]): Promise<void> {
  const rules = [...new Set(rows.map((row) => row.rule_id))];
  const found = await tx.selectFrom('alert_rule').select('id').where('id', 'in', rules).execute();
  const known = new Set(found.map(({ id }) => id));
  const left = rows.filter((row) => known.has(row.rule_id)).sort((a, b) => (a.rule_id < b.rule_id ? -1 : 1));
  if (left.length === 0) return;
  await tx
    .insertInto('alert_watch')
    .values(left)
    .onConflict((conflict) =>
      conflict
        .columns(['rule_id', 'subject'])
        .doUpdateSet((e) => ({ holds: e.ref('excluded.holds'), since: e.ref('excluded.since') }))
        .where((e) =>
          e.or([
            e('alert_watch.holds', '!=', e.ref('excluded.holds')),
            e('alert_watch.since', '>', e.ref('excluded.since')),
          ]),
        ),
    )
    .execute();
}

const sides: Record<Comparator, string> = { gt: 'above', lt: 'below' };

function alertMessage({ metric, comparator, threshold, window_s }: Rule, subject: string, value: number): string {
  const side = sides[comparator];
  const over = `over ${window_s} s`;
  const messages: Record<AlertMetric, string> = {
    error_rate: `The error rate of ${subject} is ${percent(value)} ${over}, ${side} ${percent(threshold)}.`,
    p95_ms: `The p95 latency of ${subject} is ${value} ms ${over}, ${side} ${threshold} ms.`,
    request_rate: `The request rate is ${Number(value.toPrecision(3))} per second ${over}, ${side} ${threshold}.`,
    healthy_instances: `The active revision has ${value} healthy ${value === 1 ? 'instance' : 'instances'}, ${side} ${threshold}.`,
    restarts: `Instances ended by themselves ${value} times ${over}, ${side} ${threshold}.`,
    certificate_days_left: `The certificate of ${subject} expires in ${value} days, ${side} ${threshold}.`,
    external: 'An external system fired this alert.',
  };
  return messages[metric];
}

const percent = (rate: number): string => `${Math.round(rate * 10_000) / 100} %`;

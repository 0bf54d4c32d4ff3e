// Evaluates every rule periodically: observe → evaluate → write what changed. All state between two evaluations is in the
// database, so a crash only delays the next one. Several processes may evaluate at the same time: if two come to the same
// conclusion, the database accepts it from one of them.
import { revisionNumber } from '../contract/revision-id.ts';
import type { Db } from '../db/database.ts';
import { isUnavailable } from '../db/database-errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import type { Loop, Loops } from '../lib/loops.ts';
import { alertMessage } from './alert-message.ts';
import { isDue, lookEveryMs, measure, next, noObservation, perRevision, type Watch } from './evaluate.ts';
import { insertAlertEvents, insertAlerts, lockRule, markResolved, type NewAlert } from './incidents.ts';
import { listWatchedRules, observe, type WatchedRule } from './observe.ts';
import { type FiringAlert, listFiring, listWatches, type WatchChange, writeWatches } from './watch-queries.ts';

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
  #lookedAt: number;
  #loop: Loop | null = null;

  constructor(parts: WatcherParts) {
    this.#parts = parts;
    this.#since = parts.clock.now();
    this.#lookedAt = this.#since - lookEveryMs;
  }

  start(): void {
    this.#loop = this.#parts.loops.start({ name: 'alerts', intervalMs: lookEveryMs, step: () => this.look() });
  }

  async stop(): Promise<void> {
    await this.#loop?.stop();
  }

  async look(): Promise<void> {
    const { db, clock } = this.#parts;
    const nowMs = clock.now();
    this.#since = Math.min(this.#since, nowMs);
    const rules = (await listWatchedRules(db)).filter((rule) => isDue(rule, this.#lookedAt, nowMs));
    const { watches, fire, resolve } = await this.#evaluate(rules, nowMs);
    this.#lookedAt = nowMs;
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
   * A write that fails does not hold up the others; the next evaluation tries it again. A database that is away ends them
   * all: waiting for it once per write would take for ever.
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

// Makes what runs in an environment equal to what should run: starts what is missing, with back-off; drains and stops
// what is too much; replaces what died. It is called again and again and always looks at what is there now.
import type { HealthCheck } from '../../contract/environments.ts';
import type { Db } from '../../db/database.ts';
import type { Engine, EngineInstance, InstanceSpec } from '../../engines/engine.ts';
import { EngineError } from '../../engines/engine.ts';
import type { EnvironmentKey } from '../../environments/key.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IdSource } from '../../lib/ids.ts';
import type { Log } from '../../lib/log.ts';
import { touchRouting } from '../../traffic/queries.ts';
import { Crashes } from '../rules/crashes.ts';
import type { Failure } from '../rules/rollout.ts';
import type { HealthWatch } from './health-watch.ts';
import {
  deleteInstance,
  type InstanceRow,
  insertInstance,
  listInstances,
  markInstance,
  setInstanceAddress,
} from './instances.ts';

export interface Wanted {
  number: number;
  instances: number;
  /** What to start; null: nothing of it is to be started. */
  spec: Omit<InstanceSpec, 'id'> | null;
}

export interface Place {
  key: EnvironmentKey;
  region: string;
  engine: Engine;
  health: HealthCheck;
  drainS: number;
}

export interface KeeperParts {
  db: Db;
  clock: Clock;
  ids: IdSource;
  log: Log;
  health: HealthWatch;
  /** How long routers may take to notice that an instance is drained. */
  settleMs: number;
  /** Something changed that a later look will want to see. */
  onChange(key: EnvironmentKey): void;
}

const logTailLines = 50;

export class Keeper {
  readonly crashes = new Crashes();
  readonly #parts: KeeperParts;
  /** Calls to engines under way, by instance: they take their time, and nothing waits for them. */
  readonly #underway = new Map<string, Promise<void>>();

  constructor(parts: KeeperParts) {
    this.#parts = parts;
  }

  /** Gives the rows as they are afterwards. */
  async keep(place: Place, actual: Map<string, EngineInstance>, wanted: Wanted[]): Promise<InstanceRow[]> {
    const { db } = this.#parts;
    for (const row of await listInstances(db, place.key)) {
      if (this.#underway.has(row.id)) continue;
      if (row.state === 'draining') this.#stopWhenDrained(place, row);
      else await this.#look(place, row, actual.get(row.id), wanted);
    }
    const rows = await listInstances(db, place.key);
    const numbers = new Set([...wanted.map(({ number }) => number), ...rows.map((row) => row.revision)]);
    for (const number of numbers) {
      const want = wanted.find((item) => item.number === number);
      const own = rows.filter((row) => row.revision === number && row.state !== 'draining');
      const missing = (want?.instances ?? 0) - own.length;
      if (missing > 0 && want?.spec) await this.#startSome(place, want.spec, missing);
      if (missing < 0) await this.#drainSome(place, own, -missing);
    }
    return listInstances(db, place.key);
  }

  /** Waits for every call to an engine that is under way. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#underway.values());
  }

  async #look(place: Place, row: InstanceRow, found: EngineInstance | undefined, wanted: Wanted[]): Promise<void> {
    const { db, clock, health } = this.#parts;
    if (!found) return this.#missing(place, row, wanted);
    if (found.state === 'exited') return this.#ended(place, row, found);
    if (found.address && (row.host !== found.address.host || row.port !== found.address.port)) {
      await setInstanceAddress(db, row.id, found.address);
      if (row.state === 'healthy') await touchRouting(db);
    }
    if (!found.address) return;
    health.watch(row.id, found.address, place.health, row.state === 'starting' ? 'unknown' : (row.state as 'healthy'));
    const seen = health.healthOf(row.id);
    if (seen === 'healthy' && row.state !== 'healthy') await this.#mark(row, 'healthy');
    if (seen === 'unhealthy' && row.state === 'healthy') await this.#mark(row, 'unhealthy');
    const waitedMs = clock.now() - row.state_since;
    if (row.state !== 'healthy' && seen !== 'healthy' && waitedMs > place.health.start_timeout_s * 1000) {
      await this.#giveUp(place, row, this.#whyNotHealthy(row));
    }
  }

  /** The engine does not know it: it was never started, or the engine lost it. */
  async #missing(place: Place, row: InstanceRow, wanted: Wanted[]): Promise<void> {
    const spec = wanted.find(({ number }) => number === row.revision)?.spec;
    if (row.state === 'starting' && spec) return this.#start(place, { ...spec, id: row.id });
    await this.#forget(row);
  }

  async #ended(place: Place, row: InstanceRow, found: EngineInstance): Promise<void> {
    await this.#giveUp(place, row, { code: 'crashed', message: `An instance ended with exit code ${found.exitCode}.` });
  }

  #whyNotHealthy(row: InstanceRow): Failure {
    const last = this.#parts.health.lastOf(row.id);
    return last && !last.ok && last.fault === 'bad_answer'
      ? { code: 'health_check_failed', message: last.message }
      : { code: 'start_timeout', message: 'An instance did not become healthy in time.' };
  }

  async #giveUp(place: Place, row: InstanceRow, failure: Failure): Promise<void> {
    const { clock, log } = this.#parts;
    const lines = await place.engine.logs(row.id, { tail: logTailLines }).catch(() => []);
    this.crashes.note(
      revisionKey(place.key, row.revision),
      failure,
      lines.map((line) => line.text.slice(0, 2000)),
      clock.now(),
    );
    const { id, project_id, environment, revision } = row;
    log.warn({ instance: id, project: project_id, environment, revision }, failure.message);
    await this.#forget(row);
    this.#run(place.key, row.id, () => place.engine.stop(row.id, 0));
  }

  async #startSome(place: Place, spec: Omit<InstanceSpec, 'id'>, count: number): Promise<void> {
    const { db, clock, ids } = this.#parts;
    if (clock.now() < this.crashes.nextStartAt(revisionKey(place.key, spec.revision))) return;
    for (let i = 0; i < count; i++) {
      const id = ids('ins');
      const nowMs = clock.now();
      await insertInstance(db, {
        id,
        project_id: place.key.projectId,
        environment: place.key.environment,
        revision: spec.revision,
        region: place.region,
        state: 'starting',
        host: null,
        port: null,
        created_at: nowMs,
        state_since: nowMs,
      });
      this.#start(place, { ...spec, id });
    }
  }

  #start(place: Place, spec: InstanceSpec): void {
    this.#run(place.key, spec.id, async () => {
      try {
        await place.engine.start(spec);
      } catch (error) {
        if (error instanceof EngineError && error.fault === 'unavailable') return;
        const failure = {
          code: 'crashed' as const,
          message: `An instance could not be started: ${(error as Error).message}`,
        };
        this.crashes.note(revisionKey(place.key, spec.revision), failure, [], this.#parts.clock.now());
        await place.engine.stop(spec.id, 0).catch(() => {});
        await deleteInstance(this.#parts.db, spec.id);
      }
    });
  }

  /** The newest go first, and before them those that serve nobody. */
  async #drainSome(place: Place, own: InstanceRow[], count: number): Promise<void> {
    const { clock } = this.#parts;
    const rank = (row: InstanceRow) => (row.state === 'healthy' ? 1 : 0);
    const going = own.toSorted((a, b) => rank(a) - rank(b) || (a.id < b.id ? 1 : -1)).slice(0, count);
    for (const row of going) {
      await this.#mark(row, 'draining');
      this.#stopWhenDrained(place, { ...row, state: 'draining', state_since: clock.now() }, row.state !== 'healthy');
    }
  }

  #stopWhenDrained(place: Place, row: InstanceRow, atOnce = false): void {
    const { db, clock, health, settleMs } = this.#parts;
    const waitedMs = clock.now() - row.state_since;
    if (!atOnce && waitedMs < settleMs + place.drainS * 1000) return;
    this.#run(place.key, row.id, async () => {
      await place.engine.stop(row.id, place.drainS);
      health.forget(row.id);
      await deleteInstance(db, row.id);
    });
  }

  async #mark(row: InstanceRow, to: 'healthy' | 'unhealthy' | 'draining'): Promise<void> {
    const { db, clock } = this.#parts;
    await db.transaction().execute(async (tx) => {
      await markInstance(tx, row.id, ['starting', 'healthy', 'unhealthy'], to, clock.now());
      await touchRouting(tx);
    });
  }

  async #forget(row: InstanceRow): Promise<void> {
    const { db, health } = this.#parts;
    health.forget(row.id);
    await db.transaction().execute(async (tx) => {
      await deleteInstance(tx, row.id);
      await touchRouting(tx);
    });
  }

  #run(key: EnvironmentKey, id: string, call: () => Promise<void>): void {
    const { log, onChange } = this.#parts;
    const running = call()
      .catch((error) => log.warn({ err: error, instance: id }, 'the engine did not do as asked'))
      .finally(() => {
        this.#underway.delete(id);
        onChange(key);
      });
    this.#underway.set(id, running);
  }
}

export const revisionKey = ({ projectId, environment }: EnvironmentKey, revision: number): string =>
  `${projectId} ${environment} ${revision}`;

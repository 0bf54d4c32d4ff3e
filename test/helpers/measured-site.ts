// Environments as if they had been deployed and visited, on a clock that the test moves. Watchers read what was stored.
import { after, before } from 'node:test';
import { Watcher } from '../../src/alerts/watcher.ts';
import type { Alert } from '../../src/contract/alerts.ts';
import { insertRevision, takeRevisionNumber } from '../../src/deployments/deployment-queries.ts';
import { createIds } from '../../src/lib/ids.ts';
import { createLoops } from '../../src/lib/loops.ts';
import { subscribe } from '../../src/signals/signals.ts';
import { latencyBoundsMs } from '../../src/traffic/latency.ts';
import { bucketOf } from '../../src/traffic/measurements.ts';
import { storeMeasurements } from '../../src/traffic/traffic-queries.ts';
import { startApp, type TestApp } from './app.ts';
import { accountOf } from './emit.ts';

export const dayMs = 86_400_000;

class MovedTime {
  nowMs = Date.parse('2026-11-15T08:30:03.210Z');
  readonly clock = { now: () => this.nowMs };
  readonly ids = createIds(this.clock);
  /** Projects of the environments that were signalled. */
  readonly signalled: string[] = [];
  app!: TestApp;
  /** One per process of an installation with several; all look at once. */
  watchers: Watcher[] = [];

  async start(): Promise<void> {
    this.app = await startApp({ tokenLimit: 1_000_000, clock: this.clock, env: { SLUICE_ROLES: 'api' } });
    this.watchers = Array.from({ length: 3 }, () => this.newWatcher());
    subscribe(this.app.app.store.db, 'environments', (keys) => {
      for (const { projectId } of keys) this.signalled.push(projectId);
    });
  }

  newWatcher(): Watcher {
    const { store, log } = this.app.app;
    return new Watcher({ db: store.db, clock: this.clock, ids: this.ids, log, loops: createLoops(log) });
  }

  evaluateAlerts(): Promise<unknown> {
    return Promise.all(this.watchers.map((watcher) => watcher.evaluateDue()));
  }

  /** Lets time pass second by second, and evaluates the alerts every five; returns after how many ms `done` was true, or null. */
  async pass(
    seconds: number,
    each: () => Promise<void> = async () => {},
    done: () => Promise<boolean> = async () => false,
  ): Promise<number | null> {
    const begun = this.nowMs;
    for (let second = 0; second < seconds; second++) {
      await each();
      this.nowMs += 1000;
      if (second % 5 !== 4) continue;
      await this.evaluateAlerts();
      if (await done()) return this.nowMs - begun;
    }
    return null;
  }
}

/** For all tests of a file: started before the first, stopped after the last. */
export function movedTime(): MovedTime {
  const time = new MovedTime();
  before(() => time.start());
  after(() => time.app?.stop());
  return time;
}

/** A project whose environment is served by revision 1, as if it had been deployed. */
export class Site {
  readonly id: string;
  readonly #time: MovedTime;
  readonly #counts = new Map<string, { requests: number; errors: number; latency: number[] }>();

  private constructor(time: MovedTime, id: string) {
    this.#time = time;
    this.id = id;
  }

  static async open(time: MovedTime, ...rules: object[]): Promise<Site> {
    const { app: t, nowMs } = time;
    const site = new Site(time, (await t.call('POST', '/v1/projects', { body: { name: 'Shop' } })).body.id);
    const defaults = (await site.api('GET', '/alert-rules')).data;
    if (rules.length > 0) for (const { id } of defaults) await site.api('DELETE', `/alert-rules/${id}`);
    for (const rule of rules) await site.api('POST', '/alert-rules', { environment: 'production', name: 'R', ...rule });
    const { db } = t.app.store;
    const number = await takeRevisionNumber(db, { projectId: site.id, environment: 'production' });
    await insertRevision(db, {
      ...{ project_id: site.id, environment: 'production', number, deployment_id: '', image: '', digest: null },
      ...{
        port: 8080,
        variables_sealed: null,
        health_check: '{}',
        resources: '{}',
        state: 'active',
        traffic_percent: 100,
        restored_from: null,
      },
      ...{ created_at: nowMs, activated_at: nowMs, retired_at: null },
    });
    return site;
  }

  async api(method: string, path: string, body?: object) {
    return (await this.#time.app.call(method, `/v1/projects/${this.id}${path}`, { body })).body;
  }

  async instance(state: 'healthy' | 'unhealthy'): Promise<void> {
    const { app, ids, nowMs } = this.#time;
    const { db } = app.app.store;
    await db.deleteFrom('instance').where('project_id', '=', this.id).execute();
    await db
      .insertInto('instance')
      .values({
        ...{ id: ids('ins'), project_id: this.id, environment: 'production', revision: 1, region: 'local', state },
        ...{ host: '127.0.0.1', port: 1, created_at: nowMs, state_since: nowMs },
      })
      .execute();
  }

  /** A domain with a certificate that ends in so many days. */
  async domain(hostname: string, days: number): Promise<void> {
    const { app, ids, nowMs } = this.#time;
    const { db } = app.app.store;
    const [id, certificate] = [ids('dom'), ids('crt')];
    const account_id = await accountOf(db, this.id);
    await db
      .insertInto('domain')
      .values({
        ...{ id, account_id, project_id: this.id, environment: 'production', hostname, state: 'active' },
        ...{ certificate_id: certificate, last_error: null, failures: 0, next_attempt_at: null, wait_until: null },
        ...{ renew_asked: 0, lease_owner: null, lease_until: 0, order_directory: null, order_url: null },
        ...{ order_key_sealed: null, created_at: nowMs, updated_at: nowMs, version: 1 },
      })
      .execute();
    await db
      .insertInto('certificate')
      .values({
        ...{ id: certificate, domain_id: id, issuer: 'x', serial: '1', not_before: nowMs, renew_at: nowMs },
        ...{ not_after: nowMs + days * dayMs, fingerprint_sha256: '', chain_pem: '', key_sealed: '' },
        ...{ ari_id: null, ari_ask_at: null, created_at: nowMs },
      })
      .execute();
  }

  /** Stores a second of requests to a revision, as a router does. */
  async serve({ revision = 1, requests = 10, errors = 0, latencyIndex = 3 } = {}): Promise<void> {
    const at = bucketOf(this.#time.nowMs);
    const of = { project: this.id, environment: 'production', revision, at };
    const key = `${revision} ${at}`;
    const before = this.#counts.get(key) ?? { requests: 0, errors: 0, latency: latencyBoundsMs.map(() => 0).concat(0) };
    const counts = {
      requests: before.requests + requests,
      errors: before.errors + errors,
      latency: before.latency.map((count, index) => (index === latencyIndex ? count + requests : count)),
    };
    this.#counts.set(key, counts);
    await storeMeasurements(this.#time.app.app.store.db, 'router', [{ ...of, ...counts }]);
  }

  async alerts(): Promise<Alert[]> {
    return (await this.api('GET', '/alerts')).data.reverse();
  }

  /** Kinds and alerts of the project's events, in order. */
  async told(): Promise<[string, Alert][]> {
    const rows = await this.#time.app.app.store.db
      .selectFrom('event')
      .select(['type', 'body'])
      .where('project_id', '=', this.id)
      .orderBy('sequence')
      .execute();
    return rows.map(({ type, body }) => [type, JSON.parse(body).data]);
  }

  async kinds(): Promise<string[]> {
    return (await this.told()).map(([kind]) => kind);
  }
}

// Every transaction has a budget of rows, whatever the quotas are filled with: the account here has as many webhooks and
// tokens as it may have, and a project with much behind it.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import fc from 'fast-check';
import { sql } from 'kysely';
import { routes } from '../../../src/contract/api.ts';
import type { Db } from '../../../src/db/database.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createIds } from '../../../src/lib/ids.ts';
import { onPostgres } from '../../helpers/app.ts';
import { accountOf } from '../../helpers/emit.ts';
import { fitting, type Schema } from '../../helpers/schema-values.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { until } from '../../helpers/wait.ts';

const budget = 2500;
const t = sharedApp({ tokenLimit: 1_000_000 });
const ids = createIds(systemClock);
const now = Date.now();

/** Rows written by each transaction since it was last emptied. */
const written: number[] = [];

/** What this session has written: deletes by foreign keys included. */
async function rowsWritten(tx: Db): Promise<number> {
  const { rows } = await (onPostgres
    ? sql<{ n: number }>`select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) as n from pg_stat_xact_user_tables`
    : sql<{ n: number }>`select total_changes() as n`
  ).execute(tx);
  return Number(rows[0]!.n);
}

function countTransactions(db: Db): void {
  const begin = db.transaction.bind(db);
  db.transaction = () => {
    const builder = begin();
    const execute = builder.execute.bind(builder);
    builder.execute = (work) =>
      execute(async (tx) => {
        const earlier = await rowsWritten(tx);
        const result = await work(tx);
        written.push((await rowsWritten(tx)) - earlier);
        return result;
      });
    return builder;
  };
}

async function insertMany(table: string, rows: object[]): Promise<void> {
  // biome-ignore lint/suspicious/noExplicitAny: rows of several tables
  const db = t.app.store.db as any;
  for (let i = 0; i < rows.length; i += 500) {
    await db
      .insertInto(table)
      .values(rows.slice(i, i + 500))
      .execute();
  }
}

const times = (count: number) => Array.from({ length: count }, (_, n) => n);

describe('rows written in one transaction', () => {
  const named = {} as Record<'id' | 'name' | 'whk' | 'tok' | 'rul' | 'dpl' | 'r' | 'dom' | 'reg', string>;

  /** As many of everything as there may be, or as a busy year leaves behind. */
  before(async () => {
    const { db } = t.app.store;
    const call = async (path: string, body: object) => (await t.call('POST', `/v1${path}`, { body })).body;
    named.id = await t.newProject();
    named.name = 'production';
    const account_id = await accountOf(db, named.id);
    const image = { environment: 'production', image: 'registry.example/shop:1' };
    Object.assign(named, { dpl: (await call(`/projects/${named.id}/deployments`, image)).id, r: 'r1' });
    const hook = { url: 'http://127.0.0.1:9/', events: ['*'] };
    named.whk = (await call('/webhooks', hook)).id;
    const [webhook] = await db.selectFrom('webhook').selectAll().where('id', '=', named.whk).execute();
    await insertMany(
      'webhook',
      times(999).map((n) => ({ ...webhook!, id: ids('whk'), state: 'paused', ordering: n % 2 ? 'strict' : 'none' })),
    );
    named.tok = (await call('/tokens', { name: 'parent', scopes: ['*'] })).id;
    const [token] = await db.selectFrom('token').selectAll().where('id', '=', named.tok).execute();
    await insertMany(
      'token',
      times(990).map((n) => ({ ...token!, id: ids('tok'), hash: `hash ${n}`, parent_id: named.tok })),
    );
    const rule = { environment: 'production', name: 'Own', metric: 'external' };
    named.rul = (await call(`/projects/${named.id}/alert-rules`, rule)).id;
    const owned = { account_id, project_id: named.id, environment: 'production' };
    const alert = { ...owned, rule_id: named.rul, name: 'Own', severity: 'warning', message: 'm', value: 1 };
    await insertMany(
      'alert',
      times(120).map((n) => ({ ...alert, id: ids('alr'), subject: `${n}`, fired_at: now, resolved_at: null })),
    );
    const event = { account_id, project_id: named.id, type: 'alert.fired', body: '{}', created_at: now };
    const events = times(1500).map((n) => ({ ...event, id: ids('evt'), sequence: 1_000_000 + n }));
    await insertMany('event', events);
    const delivery = { webhook_id: named.whk, type: 'alert.fired', state: 'failed', position: 0, due_at: 0 };
    await insertMany(
      'delivery',
      events.map(({ id }) => ({ ...delivery, id: ids('dlv'), event_id: id, attempts: 1, tried: 1, created_at: now })),
    );
    const deployment = {
      ...{ ...owned, kind: 'deploy', image: 'registry.example/shop:1', strategy: 'rolling', state: 'succeeded' },
      ...{ state_since: now, canary_step: 0, canary_percent_now: 0, created_by: named.tok },
      ...{ created_at: now, finished_at: now, version: 1 },
    };
    const deployments = times(1000).map((n) => ({ ...deployment, id: ids('dpl'), revision: n + 100 }));
    await insertMany('deployment', deployments);
    const timeline = { at: now, state: 'queued', message: 'm' };
    await insertMany(
      'deployment_timeline',
      deployments.flatMap(({ id }) => times(2).map((seq) => ({ ...timeline, deployment_id: id, seq }))),
    );
    const domain = { hostname: 'own.example', environment: 'production' };
    named.dom = (await call(`/projects/${named.id}/domains`, domain)).id;
    named.reg = (await call('/registries', { host: 'registry.example', username: 'a', password: 'b' })).id;
    countTransactions(db);
  });

  const most = () => Math.max(0, ...written.splice(0));
  const at = (path: string) =>
    `/v1${path.replaceAll(/\{(\w+)\}/g, (_, name: string) => named[name as keyof typeof named] ?? 'x')}`;

  test('any write route, with bodies that fit its schema', async () => {
    const changes = routes.filter(({ method, scope }) => method !== 'GET' && method !== 'DELETE' && scope !== 'public');
    for (const { method, path, body } of changes) {
      const bodies = body ? fc.sample(fitting(body as unknown as Schema), { numRuns: 2, seed: 3 }) : [undefined];
      for (const one of bodies) {
        const { status } = await t.call(method, at(path), one === undefined ? {} : { body: one });
        assert.ok(status < 500, `${method} ${path}: ${status}`);
        const rows = most();
        assert.ok(rows <= budget, `${method} ${path} wrote ${rows} rows in one transaction`);
      }
    }
  });

  test('what is largest: a replay, a deployment, a message of 1,000 alerts', async () => {
    const since = new Date(now - 86_400_000).toISOString();
    const replayed = await t.call('POST', at('/webhooks/{whk}/replay'), { body: { since } });
    assert.deepEqual(replayed.body, { scheduled: 1000, has_more: true });
    const image = 'registry.example/shop:2';
    await t.call('POST', at('/projects/{id}/deployments'), { body: { environment: 'production', image } });
    const other = most();
    const alerts = times(1000).map((n) => ({
      ...{ status: 'firing', labels: { alertname: 'Many' }, annotations: {}, fingerprint: n.toString(16) },
      ...{ startsAt: new Date(now).toISOString(), endsAt: new Date(now).toISOString() },
    }));
    const message = { version: '4', status: 'firing', alerts };
    const { status, body } = await t.call('POST', at('/projects/{id}/alerts/alertmanager'), { body: message });
    assert.deepEqual([status, body], [200, { fired: 1000, resolved: 0 }]);
    assert.ok(written.length >= 20, 'the message is split');
    const fired = most();
    assert.ok(Math.max(fired, other) <= budget, `${fired} and ${other} rows in one transaction`);
    // A million deliveries would come of the message.
    const { db } = t.app.store;
    await db.updateTable('webhook').set({ state: 'disabled' }).where('id', '!=', named.whk).execute();
  });

  test('what is deleted, the largest last: 204 at once, nothing of it answers, and all of it goes in the end', async () => {
    const { db } = t.app.store;
    await until('the deployment ends', async () => {
      const busy = db.selectFrom('deployment').select('id').where('finished_at', 'is', null);
      return (await busy.execute()).length === 0 || undefined;
    });
    await t.call('POST', at('/projects/{id}/environments'), { body: { name: 'staging' } });
    for (const path of [
      '/projects/{id}/alert-rules/{rul}',
      '/tokens/{tok}?cascade=true',
      '/registries/{reg}',
      '/projects/{id}',
    ]) {
      const { status, body } = await t.call('DELETE', at(path));
      assert.equal(status, 204, `${path}: ${JSON.stringify(body)}`);
      const rows = most();
      assert.ok(rows <= budget, `DELETE ${path} wrote ${rows} rows in one transaction`);
    }
    assert.equal((await t.call('GET', at('/projects/{id}'))).status, 404);
    assert.deepEqual(
      (await t.call('GET', '/v1/projects')).body.data.filter(({ id }: { id: string }) => id === named.id),
      [],
    );
    const again = await t.call('POST', '/v1/projects', { body: { name: 'Shop', slug: 'shop' } });
    assert.equal(again.status, 201, JSON.stringify(again.body));
    const left = async () => {
      const project = await db.selectFrom('project').select('id').where('id', '=', named.id).execute();
      const rest = await db.selectFrom('deployment').select('id').where('project_id', '=', named.id).execute();
      return [project.length, rest.length];
    };
    await until('nothing of it is left', async () => (await left()).every((count) => count === 0) || undefined, 60_000);
    assert.ok(most() <= budget);
  });
});

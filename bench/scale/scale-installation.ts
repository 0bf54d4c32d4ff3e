// A PostgreSQL with an installation of many environments in it, written as rows: each environment has a project, a
// revision that serves, its deployment, an instance, two alert rules and its place in the routing table. Every account
// has some of them, and one webhook.
import { sql } from 'kysely';
import { insertDefaultRules } from '../../src/alerts/default-rules.ts';
import { type App, createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import type { Db } from '../../src/db/database.ts';
import type { Tables } from '../../src/db/tables.ts';
import type { Engine, EngineInstance } from '../../src/engines/engine.ts';
import { newEnvironment } from '../../src/environments/change-environment.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { createIds, type IdSource } from '../../src/lib/ids.ts';
import { isolatedEnv } from '../../test/helpers/app.ts';
import { parentOf } from '../../test/helpers/children.ts';
import { createDatabase, startPostgres } from '../../test/helpers/postgres.ts';

export const environment = 'production';
export const accounts = 1000;

/** As long as a real id is, and in the order of `n`. */
export const idOf = (prefix: string, n: number): string => `${prefix}_${n.toString(16).padStart(26, '0')}`;
const idIn = (prefix: string, n = 'n'): string => `'${prefix}_' || lpad(to_hex(${n}), 26, '0')`;

const literal = (value: unknown): string =>
  value === null ? 'null' : typeof value === 'number' ? String(value) : `'${String(value).replaceAll("'", "''")}'`;

/** Rows 0 to `count` - 1 are like `row`, but for the columns whose SQL is given; `n` in it is the number of the row. */
async function fillTable<T extends keyof Tables>(
  db: Db,
  table: T,
  row: Partial<Record<keyof Tables[T], unknown>>,
  varied: Partial<Record<keyof Tables[T], string>>,
  count: number,
): Promise<void> {
  const columns = [...new Set([...Object.keys(row), ...Object.keys(varied)])] as (keyof Tables[T])[];
  const values = columns.map((name) => varied[name] ?? literal(row[name]));
  const step = 25_000; // a statement has 15 seconds
  for (let from = 0; from < count; from += step) {
    const last = Math.min(count, from + step) - 1;
    const statement = `insert into ${table} (${columns.join(', ')})
      select ${values.join(', ')} from generate_series(${from}, ${last}) as n`;
    await sql.raw(statement).execute(db);
  }
}

export async function fillInstallation(db: Db, count: number, nowMs: number): Promise<void> {
  const times = { created_at: nowMs, updated_at: nowMs, version: 1 };
  const project_id = idIn('prj');
  const account_id = idIn('acc', `n % ${accounts}`);
  await fillTable(db, 'account', { created_at: nowMs }, { id: idIn('acc'), name: `'account ' || n` }, accounts);
  const project = { name: 'Shop', description: null, labels: '[]', next_sequence: 1, ...times };
  await fillTable(db, 'project', project, { id: project_id, account_id, slug: `'p-' || n` }, count);
  const settings = newEnvironment({ projectId: '', name: environment, region: 'local', host: '' }, nowMs);
  const healthy = { ...settings, health_state: 'healthy', health_since: nowMs };
  await fillTable(db, 'environment', healthy, { project_id, host: `'p-' || n || '-production'` }, count);
  await fillRevisions(db, count, nowMs, project_id, account_id);
  await fillRules(db, count, nowMs, project_id);
  const host = `'10.' || (n / 65536) || '.' || (n / 256 % 256) || '.' || (n % 256)`;
  const instance = { environment, revision: 1, region: 'local', state: 'healthy', port: 8080, state_since: nowMs };
  // As earlier reconcile passes would have left it.
  const checked = { started_at: nowMs, checked_at: nowMs, check_ok: 1, check_message: 'connected' };
  await fillTable(
    db,
    'instance',
    { ...instance, ...checked, created_at: nowMs },
    { id: idIn('ins'), project_id, host },
    count,
  );
  await fillTable(db, 'routing', { environment }, { project_id, version: 'n + 1' }, count);
  await sql`insert into meta (name, value) values ('routing_version', ${String(count)})
    on conflict (name) do update set value = excluded.value`.execute(db);
  const webhook = { events: '["*"]', ordering: 'none', state: 'enabled', url: 'https://hooks.example/', ...times };
  const rest = { secret_sealed: 'x'.repeat(80), next_position: 1, failures: 0 };
  await fillTable(db, 'webhook', { ...webhook, ...rest }, { id: idIn('whk'), account_id: idIn('acc') }, accounts);
}

async function fillRevisions(db: Db, count: number, nowMs: number, project_id: string, account_id: string) {
  const image = 'registry.example/shop:1';
  const digest = `sha256:${'0'.repeat(64)}`;
  const revision = { environment, number: 1, image, digest, port: 8080, state: 'active', traffic_percent: 100 };
  const activated = { created_at: nowMs, activated_at: nowMs };
  await fillTable(db, 'revision', { ...revision, ...activated }, { project_id, deployment_id: idIn('dpl') }, count);
  const deployment = {
    environment,
    kind: 'deploy',
    revision: 1,
    image,
    digest,
    strategy: 'rolling',
    state: 'succeeded',
  };
  const steps = { state_since: nowMs, canary_step: 0, canary_percent_now: 0, created_by: idOf('tok', 1) };
  const ended = { ...steps, created_at: nowMs, started_at: nowMs, finished_at: nowMs, version: 7 };
  await fillTable(db, 'deployment', { ...deployment, ...ended }, { id: idIn('dpl'), project_id, account_id }, count);
  const line = { at: nowMs, state: 'starting', message: 'The instances of the new revision are being started.' };
  const of = { deployment_id: idIn('dpl', 'n / 6'), seq: 'n % 6 + 1' };
  await fillTable(db, 'deployment_timeline', line, of, count * 6);
}

/** As the service creates them for a new environment; their first two are copied. */
async function fillRules(db: Db, count: number, nowMs: number, project_id: string): Promise<void> {
  let made = 0;
  const ids = (prefix: string) => idOf(prefix, made++);
  await insertDefaultRules(db, { ids, clock: { now: () => nowMs } }, { projectId: idOf('prj', 0), environment });
  const rules = await db.selectFrom('alert_rule').selectAll().execute();
  await db.deleteFrom('alert_rule').execute();
  for (const [index, rule] of rules.entries()) {
    await fillTable(db, 'alert_rule', rule, { id: idIn('rul', `n * ${rules.length} + ${index}`), project_id }, count);
  }
}

/** Events of one account that have had their deliveries. */
export async function fillEvents(db: Db, accountId: string, count: number, atMs: number): Promise<void> {
  const body = JSON.stringify({ id: idOf('evt', 0), type: 'deployment.succeeded', data: 'x'.repeat(900) });
  const event = {
    type: 'deployment.succeeded',
    body,
    created_at: atMs,
    account_id: accountId,
    project_id: idOf('prj', 0),
  };
  await fillTable(db, 'event', event, { id: idIn('evt'), sequence: 'n + 1', position: 'n + 1' }, count);
  await db
    .updateTable('project')
    .set({ next_sequence: count + 2 })
    .where('id', '=', idOf('prj', 0))
    .execute();
}

/** Webhooks of other accounts, each of which wants every event of its account. */
export async function fillEndpoints(db: Db, count: number, atMs: number): Promise<void> {
  const times = { created_at: atMs, updated_at: atMs, version: 1 };
  await fillTable(db, 'account', { created_at: atMs }, { id: idIn('acc'), name: `'account ' || n` }, count);
  const webhook = { events: '["*"]', ordering: 'none', state: 'enabled', url: 'https://hooks.example/', ...times };
  const rest = { secret_sealed: 'x'.repeat(80), next_position: 1, failures: 0 };
  await fillTable(db, 'webhook', { ...webhook, ...rest }, { id: idIn('whk'), account_id: idIn('acc') }, count);
}

/** Events with one delivery each, due now; the first account has the first one, and so on. */
export async function fillDeliveries(db: Db, round: number, count: number, dueMs: number): Promise<void> {
  const prefix = `00${round}`; // below every id of our time
  const place = `n + ${round * 10_000_000}`; // behind what the account and the project have already
  const body = JSON.stringify({ id: idOf('evt', 0), type: 'deployment.succeeded', data: 'x'.repeat(900) });
  const of = { account_id: idIn('acc', `n % ${accounts}`), project_id: idIn('prj', `n % ${accounts}`) };
  const event = { type: 'deployment.succeeded', body, created_at: dueMs };
  const id = (kind: string) => `'${kind}_${prefix}' || lpad(to_hex(n), ${26 - prefix.length}, '0')`;
  await fillTable(db, 'event', event, { ...of, id: id('evt'), sequence: place, position: place }, count);
  const delivery = { type: 'deployment.succeeded', state: 'pending', position: 0, due_at: dueMs, created_at: dueMs };
  const unclaimed = { ...delivery, lease_until: 0, attempts: 0, tried: 0 };
  const to = { id: id('dlv'), event_id: id('evt'), webhook_id: idIn('whk', `n % ${accounts}`) };
  await fillTable(db, 'delivery', unclaimed, to, count);
}

/** Runs what the rows say, and nothing else happens to it. */
export function calmEngine(count: number): Engine {
  const all = Array.from({ length: count }, (_, n): EngineInstance => {
    const host = `10.${Math.floor(n / 65_536)}.${Math.floor(n / 256) % 256}.${n % 256}`;
    const labels = { project: idOf('prj', n), environment, revision: 1 };
    return {
      ...labels,
      id: idOf('ins', n),
      state: 'running',
      ready: true,
      exitCode: null,
      address: { host, port: 8080 },
    };
  });
  const nothing = async () => {};
  return {
    kind: 'kubernetes',
    publishesOn: null,
    probe: nothing,
    prepare: async () => ({ digest: '' }),
    keep: (_set, members) => members.map(nothing),
    drop: nothing,
    list: async () => all.slice(),
    stop: nothing,
    logs: async () => [],
    close: nothing,
  };
}

export interface Installation {
  app: App;
  /** How many environments it has. */
  count: number;
  databaseUrl: string;
  /** The process id of PostgreSQL. */
  server: number;
  clock: Clock;
  ids: IdSource;
  close(): Promise<void>;
}

export async function openInstallation(count: number): Promise<Installation> {
  const postgres = await startPostgres();
  const database = await createDatabase(postgres.url);
  const isolated = await isolatedEnv();
  // The parts are measured one by one, so the app itself only answers requests.
  const env = { ...isolated.env, SLUICE_DATABASE_URL: database.url, SLUICE_ROLES: 'api' };
  const app = await createApp(readConfig(env, false));
  const { db } = app.store;
  const clock = systemClock;
  await fillInstallation(db, count, clock.now());
  await sql`vacuum analyze`.execute(db);
  return {
    ...{ app, count, clock, databaseUrl: database.url, ids: createIds(clock) },
    server: await serverOf(app),
    async close() {
      await app.stop();
      await isolated.clean();
      await postgres.stop();
    },
  };
}

async function serverOf({ store }: App): Promise<number> {
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(store.db);
  return parentOf(rows[0]!.pid);
}

/** Bytes of a row, its part of the indexes included. */
export async function bytesPerRow({ store }: App, table: string): Promise<number> {
  await sql.raw(`vacuum analyze ${table}`).execute(store.db);
  const { rows } = await sql
    .raw<{ bytes: number; all: number }>(
      `select pg_total_relation_size('${table}')::bigint as bytes, (select count(*) from ${table})::bigint as all`,
    )
    .execute(store.db);
  return Number(rows[0]!.bytes) / Math.max(1, Number(rows[0]!.all));
}

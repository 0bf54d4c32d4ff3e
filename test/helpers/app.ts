// The real app on a free port with a data directory and a database of its own: SQLite, or a new database on the
// PostgreSQL that the test command started.
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type App, createApp, type Overrides } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { createLog } from '../../src/lib/log.ts';
import { reserveInstancePorts } from './free-port.ts';
import { createDatabase } from './postgres.ts';

export const postgresUrl = process.env.SLUICE_TEST_POSTGRES || null;
export const onPostgres = postgresUrl !== null;
/** A migrated database, which saves each app the migrations: its name on that server, and a file of SQLite. */
const { SLUICE_TEST_POSTGRES_TEMPLATE: template, SLUICE_TEST_SQLITE_TEMPLATE: sqliteTemplate } = process.env;

export const adminToken = 'test-admin-token-0123456789';

export interface Result {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  body: any;
}

export interface CallOptions {
  token?: string | null;
  body?: unknown;
  headers?: Record<string, string>;
}

export interface TestApp {
  app: App;
  url: string;
  dataDir: string;
  env: Record<string, string>;
  call(method: string, path: string, options?: CallOptions): Promise<Result>;
  stop(): Promise<void>;
}

export interface TestAppOptions extends Overrides {
  env?: Record<string, string>;
}

/** Of the database: on a busy machine its limits are reached without a fault. */
const patience = 'connect_timeout=60&statement_timeout=60000';

export interface IsolatedEnv {
  env: Record<string, string>;
  dataDir: string;
  clean(): Promise<void>;
}

/**
 * The settings of an app that touches nothing but a new folder and, on PostgreSQL, a new database. `isMigrated: false`
 * where the test is about migrations, or about an empty folder.
 */
export async function isolatedEnv({ isMigrated = true } = {}): Promise<IsolatedEnv> {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-test-'));
  const database = postgresUrl ? await createDatabase(postgresUrl, isMigrated ? template : undefined) : null;
  if (!database && isMigrated && sqliteTemplate) copyFileSync(sqliteTemplate, join(dataDir, 'sluice.db'));
  const instancePorts = await reserveInstancePorts();
  const env: Record<string, string> = {
    SLUICE_DATA_DIR: dataDir,
    SLUICE_PORT: '0',
    SLUICE_ROUTER_PORT: '0',
    SLUICE_ROUTER_TLS_PORT: '0',
    SLUICE_DATA_PLANE: 'builtin', // HAProxy has test/both-planes/, and tests that name it
    SLUICE_REGIONS: 'local=standin:',
    SLUICE_INSTANCE_PORTS: instancePorts.range,
    SLUICE_ADMIN_TOKEN: adminToken,
    SLUICE_SAMPLE: 'off',
    SLUICE_LOG_LEVEL: 'silent',
    ...(database && { SLUICE_DATABASE_URL: `${database.url}?${patience}` }),
  };
  return {
    env,
    dataDir,
    async clean() {
      instancePorts.release();
      await database?.drop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

export async function startApp({ env: more, ...overrides }: TestAppOptions = {}): Promise<TestApp> {
  const isolated = await isolatedEnv();
  const env = { ...isolated.env, ...more };
  const log = overrides.log ?? createLog({ level: env.SLUICE_LOG_LEVEL ?? 'silent', format: 'json' });
  const silentDns = async () => [];
  const own = { standinInProcess: true, resolveTxt: silentDns };
  const app = await createApp(readConfig(env, false), { ...own, ...overrides, log }).catch(async (error) => {
    await isolated.clean();
    throw error;
  });
  const url = app.apiUrl();
  return {
    app,
    url,
    env,
    dataDir: isolated.dataDir,
    call: (method, path, options) => call(url, method, path, options),
    async stop() {
      await app.stop();
      await isolated.clean();
    },
  };
}

export async function call(url: string, method: string, path: string, options: CallOptions = {}): Promise<Result> {
  const { token = adminToken, body, headers } = options;
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json');
  return { status: response.status, headers: response.headers, body: isJson && text ? JSON.parse(text) : text };
}

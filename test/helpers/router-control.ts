// A control plane that only feeds routers, as a process of its own that can be killed, and a database with one environment
// in it, whose instances are started by hand and belong to no engine.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import type { Database, Db } from '../../src/db/database.ts';
import { openDatabase } from '../../src/db/open-database.ts';
import type { Target } from '../../src/traffic/data-plane.ts';
import { markRoutingChanged } from '../../src/traffic/traffic-queries.ts';
import { adminToken, call } from './app.ts';
import { ownProcessArgs, ownProcessEnv } from './own-process.ts';
import { host } from './router.ts';
import type { TestWorkers } from './workers.ts';

const entry = fileURLToPath(new URL('./router-control-main.ts', import.meta.url));

export const key = { projectId: '', environment: 'production' };

export interface TestControl {
  child: ChildProcess;
  ready: Promise<unknown>;
  kill(): Promise<void>;
}

type Place = Pick<TestWorkers, 'dataDir' | 'secretKey'>;

export const envOf = ({ dataDir, secretKey }: Place, databaseUrl: string | null): Record<string, string> => ({
  SLUICE_DATA_DIR: dataDir,
  SLUICE_SECRET_KEY: secretKey.toString('base64'),
  SLUICE_PORT: '0',
  SLUICE_REGIONS: 'local=standin:',
  SLUICE_ADMIN_TOKEN: adminToken,
  SLUICE_SAMPLE: 'off',
  SLUICE_LOG_LEVEL: 'silent',
  ...(databaseUrl && { SLUICE_DATABASE_URL: databaseUrl }),
});

/** An environment at `host`, and a database to change it in. */
export async function seedEnvironment(place: Place, databaseUrl: string | null): Promise<Database> {
  const app = await createApp(readConfig({ ...envOf(place, databaseUrl), SLUICE_ROLES: 'api' }, false));
  const { status, body } = await call(app.apiUrl(), 'POST', '/v1/projects', { body: { name: 'Shop' } });
  assert.equal(status, 201, JSON.stringify(body));
  await app.stop();
  key.projectId = body.id;
  const database = await openDatabase({ url: databaseUrl, dataDir: place.dataDir, onConnectionLost: () => {} });
  after(() => database.close());
  await database.db
    .updateTable('environment')
    .set({ host: host.slice(0, host.indexOf('.')) })
    .where('project_id', '=', body.id)
    .execute();
  return database;
}

/** Makes these the instances of a revision that gets all requests. */
export async function routeTo(db: Db, revision: number, targets: Target[]): Promise<void> {
  const of = { project_id: key.projectId, environment: key.environment };
  await db.transaction().execute(async (tx) => {
    await tx.deleteFrom('instance').where('project_id', '=', key.projectId).execute();
    await tx.deleteFrom('revision').where('project_id', '=', key.projectId).execute();
    await tx
      .insertInto('revision')
      .values({
        ...{ ...of, number: revision, deployment_id: 'dep', image: 'app', digest: null, port: 80 },
        ...{
          variables_sealed: null,
          health_check: '{}',
          resources: '{}',
          state: 'active',
          traffic_percent: 100,
          restored_from: null,
        },
        ...{ created_at: 1, activated_at: 1, retired_at: null },
      })
      .execute();
    for (const { instance, host, port } of targets) {
      await tx
        .insertInto('instance')
        .values({
          ...of,
          id: instance,
          revision,
          region: 'local',
          state: 'healthy',
          host,
          port,
          created_at: 1,
          state_since: 1,
        })
        .execute();
    }
    await markRoutingChanged(tx, key);
  });
}

/** The requests that routers have stored. */
export async function storedRequests(db: Db): Promise<number> {
  const { sum } = await db
    .selectFrom('traffic')
    .select((e) => e.fn.sum<number>('requests').as('sum'))
    .executeTakeFirstOrThrow();
  return Number(sum);
}

const children = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** `ready` resolves once workers can connect. */
export function startControl(workers: TestWorkers, databaseUrl: string | null): TestControl {
  const { agentSocket, ports } = workers;
  const child = spawn(process.execPath, [...ownProcessArgs, entry], {
    env: {
      ...ownProcessEnv,
      ...envOf(workers, databaseUrl),
      SLUICE_ROLES: 'router',
      TEST_ROUTER_WORKERS: JSON.stringify({ agentSocket, ports }),
    },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  children.add(child);
  const exited = once(child, 'exit').then(() => children.delete(child));
  const kill = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  after(kill);
  return { child, ready: once(child, 'message'), kill };
}

export interface Load {
  failed: string[];
  stop(): Promise<void>;
}

/** Requests in so many rows, with short pauses that leave the machine to others, until it is stopped or the test ends. */
export function startLoad(rows: number, request: () => Promise<{ status: number }>): Load {
  let running = true;
  const load: Load = { failed: [], stop };
  const row = async () => {
    while (running) {
      try {
        const { status } = await request();
        if (status !== 200) load.failed.push(`${status}`);
      } catch (error) {
        load.failed.push(String(error));
      }
      await new Promise((resolve) => setTimeout(resolve, 12));
    }
  };
  const all = Array.from({ length: rows }, row);
  async function stop(): Promise<void> {
    running = false;
    await Promise.all(all);
  }
  after(stop);
  return load;
}

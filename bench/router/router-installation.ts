// One installation on PostgreSQL: its API in this process, and routers as services of their own, as on other machines.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { newEnvironment } from '../../src/environments/change-environment.ts';
import { createIds } from '../../src/lib/ids.ts';
import { haproxyFilesOf } from '../../src/traffic/haproxy/haproxy-files.ts';
import { runningMaster, stopMaster } from '../../src/traffic/haproxy/haproxy-process.ts';
import { markRoutingChanged } from '../../src/traffic/traffic-queries.ts';
import { childrenOf } from '../../test/helpers/children.ts';
import { freePort } from '../../test/helpers/free-port.ts';
import { startPostgres } from '../../test/helpers/postgres.ts';
import { until } from '../../test/helpers/wait.ts';
import { appEnv, end, tempDir } from '../lib/processes.ts';
import { bodyAt } from './router-load.ts';

const start = join(import.meta.dirname, '../../bin/start.js');
const environment = 'production';
const rowsAtOnce = 500;

export const hostOf = (n: number): string => `p-${n}-production.localhost`;

export interface Router {
  port: number;
  /** Those that carry requests. */
  carriers(): number[];
  control(): number;
  stop(): Promise<void>;
}

export interface Installation {
  /** Projects with an environment that one instance serves, at this port of loopback. */
  fill(count: number, port: number): Promise<void>;
  /** Resolves with the commit that sends the requests of the first environment there. */
  moveFirst(port: number): Promise<void>;
  startRouter(more: { workers?: number; haproxy?: boolean }): Promise<Router>;
  stop(): Promise<void>;
}

export async function openInstallation(): Promise<Installation> {
  const postgres = await startPostgres();
  const shared = {
    SLUICE_DATABASE_URL: postgres.url,
    SLUICE_SECRET_KEY: randomBytes(32).toString('base64'),
    SLUICE_LOG_LEVEL: 'error',
  };
  const app = await createApp(readConfig({ ...appEnv(tempDir()), ...shared, SLUICE_ROLES: 'api' }, false));
  const { db } = app.store;
  const ids = createIds({ now: Date.now });
  const projects: string[] = [];
  const key = (n: number) => ({ project_id: projects[n]!, environment });

  const rowsOf = (n: number, port: number, accountId: string) => {
    const [nowMs, id] = [Date.now(), ids('prj')];
    projects[n] = id;
    const times = { created_at: nowMs, updated_at: nowMs, version: 1 };
    return {
      project: { id, account_id: accountId, name: `P ${n}`, slug: `p-${n}`, description: null, labels: '[]', ...times },
      environment: newEnvironment(
        { projectId: id, name: environment, region: 'local', host: `p-${n}-production` },
        nowMs,
      ),
      revision: {
        ...{ ...key(n), number: 1, deployment_id: 'dpl', image: 'app', digest: null, port: 80 },
        ...{ variables_sealed: null, state: 'active', traffic_percent: 100, restored_from: null },
        ...{ created_at: nowMs, activated_at: nowMs, retired_at: null },
      } as const,
      instance: {
        ...{ ...key(n), id: ids('ins'), revision: 1, region: 'local', state: 'healthy', host: '127.0.0.1', port },
        ...{ created_at: nowMs, state_since: nowMs },
      } as const,
      routing: { ...key(n), version: 1 },
    };
  };

  return {
    async fill(count, port) {
      const { id } = await db.selectFrom('account').select('id').executeTakeFirstOrThrow();
      for (let from = projects.length; from < count; from += rowsAtOnce) {
        const rows = Array.from({ length: Math.min(rowsAtOnce, count - from) }, (_, i) => rowsOf(from + i, port, id));
        await db.transaction().execute(async (tx) => {
          for (const table of ['project', 'environment', 'revision', 'instance', 'routing'] as const)
            await tx
              .insertInto(table)
              .values(rows.map((row) => row[table]) as never)
              .execute();
        });
      }
      await db.transaction().execute((tx) => markRoutingChanged(tx, { projectId: projects[0]!, environment }));
    },
    async moveFirst(port) {
      await db.transaction().execute(async (tx) => {
        await tx.updateTable('instance').set({ port }).where('project_id', '=', projects[0]!).execute();
        await markRoutingChanged(tx, { projectId: projects[0]!, environment });
      });
    },
    startRouter: (more) => startRouter(shared, more),
    async stop() {
      await app.stop();
      await postgres.stop();
    },
  };
}

async function startRouter(
  shared: Record<string, string>,
  { workers = 1, haproxy = false }: { workers?: number; haproxy?: boolean },
): Promise<Router> {
  const [dir, port, tls] = [tempDir(), await freePort(), await freePort()];
  const env: Record<string, string | undefined> = {
    ...{ ...process.env, ...appEnv(dir), ...shared, SLUICE_ROLES: 'router' },
    ...{ SLUICE_ROUTER_PORT: String(port), SLUICE_ROUTER_TLS_PORT: String(tls) },
    ...{ SLUICE_ROUTER_WORKERS: String(workers), SLUICE_DATA_PLANE: haproxy ? 'haproxy' : 'builtin' },
  };
  const child: ChildProcess = spawn(process.execPath, [start], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  process.on('exit', () => child.kill('SIGKILL'));
  const files = haproxyFilesOf(dir);
  const ofHaproxy = (): number[] => {
    const master = runningMaster(files);
    return master === null ? [] : childrenOf(master, 'haproxy');
  };
  const router: Router = {
    port,
    carriers: () => (haproxy ? ofHaproxy() : childrenOf(child.pid!, 'router-worker.js')),
    control: () => childrenOf(child.pid!, 'control.js')[0]!,
    async stop() {
      await end(child);
      if (haproxy) await stopMaster(files, 0);
    },
  };
  await until('the router to answer', () => bodyAt(port, hostOf(0)), 60_000);
  return router;
}

// The processes of one measurement: the ten receivers, the sender, and, on PostgreSQL, a producer that commits the
// jobs.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { openDatabase } from '../../src/db/open-database.ts';
import { createDatabase } from '../../test/helpers/postgres.ts';
import { api, appEnv, startServer, tempDir } from '../lib/processes.ts';

export type Kind = 'sluice' | 'pgBoss' | 'graphile';
type Stamps = [n: number, at: number][];

const running = new Set<ChildProcess>();
process.on('exit', () => running.forEach((child) => void child.kill('SIGKILL')));

class Process {
  readonly child: ChildProcess;

  constructor(entry: string, env: Record<string, string> = {}) {
    this.child = fork(join(import.meta.dirname, entry), [], {
      env: { ...process.env, ...env },
      execArgv: (process.env.BENCH_EXEC_ARGV ?? '').split(' ').filter((arg) => arg !== ''),
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    running.add(this.child);
    this.child.once('exit', () => running.delete(this.child));
  }

  /** The process exits by itself once it is disconnected. */
  async close(): Promise<void> {
    if (!this.child.connected) return;
    const exited = once(this.child, 'exit');
    this.child.disconnect();
    await exited;
  }

  async ready<T>(): Promise<T> {
    const [message] = await once(this.child, 'message');
    return message as T;
  }

  ask<T>(message: object): Promise<T> {
    const answer = this.ready<T>();
    this.child.send(message);
    return answer;
  }
}

export class Receivers extends Process {
  urls: string[] = [];

  static async open(): Promise<Receivers> {
    const receivers = new Receivers('receivers.ts');
    receivers.urls = (await receivers.ready<{ urls: string[] }>()).urls;
    return receivers;
  }

  async until(count: number, withinMs = 60_000): Promise<void> {
    const giveUpAt = Date.now() + withinMs;
    for (;;) {
      const { count: arrived } = await this.ask<{ count: number }>({ ask: 'count' });
      if (arrived >= count) return;
      if (Date.now() > giveUpAt) throw new Error(`${arrived} of ${count} arrived`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  take = async (): Promise<Stamps> => (await this.ask<{ arrived: Stamps }>({ ask: 'take' })).arrived;
  hang = (hang: boolean, others = true) => this.ask({ ask: 'hang', hang, others });
}

/** Ready to produce jobs; `begin` starts the sending. */
export interface Arena {
  producer: Process;
  worker: Process;
  begin(): Promise<void>;
  close(): Promise<void>;
}

async function prepareSluice(env: Record<string, string>, urls: string[], paused: boolean) {
  const app = await startServer('app-server.ts', env);
  const hooks: string[] = [];
  const projects: string[] = [];
  for (const url of urls) {
    const project = await api<{ id: string }>(app, 'POST', '/projects', { name: 'Bench' });
    projects.push(project.id);
    const body = { url, events: ['*'], project_id: project.id };
    const hook = await api<{ id: string }>(app, 'POST', '/webhooks', body);
    if (paused) await api(app, 'PATCH', `/webhooks/${hook.id}`, { state: 'paused' });
    hooks.push(hook.id);
  }
  await app.stop();
  const { db, close } = await openDatabase(openedBy(env));
  const rows = await db.selectFrom('project').select(['id', 'account_id']).where('id', 'in', projects).execute();
  await close();
  return { hooks, rows };
}

const openedBy = (env: Record<string, string>) => ({
  url: env.SLUICE_DATABASE_URL ?? null,
  dataDir: env.SLUICE_DATA_DIR!,
  onConnectionLost: () => {},
});

export async function openArena(
  kind: Kind,
  postgres: string | null,
  receivers: Receivers,
  paused: boolean,
): Promise<Arena> {
  const env: Record<string, string> = {
    ...appEnv(tempDir()),
    SLUICE_LOG_LEVEL: 'warn',
    BENCH_KIND: kind,
    BENCH_URLS: JSON.stringify(receivers.urls),
  };
  const database = postgres ? await createDatabase(postgres) : null;
  if (database) Object.assign(env, { BENCH_POSTGRES: database.url, SLUICE_DATABASE_URL: database.url });
  let hooks: string[] = [];
  if (kind === 'sluice') {
    const prepared = await prepareSluice(env, receivers.urls, paused);
    hooks = prepared.hooks;
    env.BENCH_PROJECTS = JSON.stringify(prepared.rows);
  }
  const worker = new Process('contender.ts', { ...env, BENCH_ROLE: 'work' });
  await worker.ready();
  const producer = database ? new Process('contender.ts', { ...env, BENCH_ROLE: 'produce' }) : worker;
  if (producer !== worker) await producer.ready();
  if (!paused) await worker.ask({ ask: 'work' });
  return {
    producer,
    worker,
    async begin() {
      await worker.ask({ ask: 'work' });
      if (kind !== 'sluice') return;
      const { db, close } = await openDatabase(openedBy(env));
      await db.updateTable('webhook').set({ state: 'enabled' }).where('id', 'in', hooks).execute();
      await close();
    },
    async close() {
      await Promise.all([worker.close(), producer.close()]);
      await database?.drop();
    },
  };
}

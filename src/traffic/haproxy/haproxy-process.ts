// The HAProxy process: started detached, so that it outlives this process, and found again by the next one. Its master
// owns the listening sockets and hands them to a new worker at a reload.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import type { RouterState } from '../data-plane.ts';
import type { HaproxyFiles } from './haproxy-files.ts';
import { ask } from './haproxy-socket.ts';

/** The master that runs with these files; null: none does. */
export function runningMaster(files: HaproxyFiles): number | null {
  try {
    const pid = Number(readFileSync(files.pid, 'utf8').trim());
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(files.config) ? pid : null;
  } catch {
    return null;
  }
}

/** Resolves when it listens. */
export async function startMaster(program: string, files: HaproxyFiles): Promise<void> {
  await rm(files.pid, { force: true });
  const sockets = ['-S', `${files.masterSocket},mode,600`];
  await runToEnd(program, ['-W', '-D', '-p', files.pid, ...sockets, '-f', files.config, '-f', files.backends]);
}

/** The first process of a daemon ends once the daemon listens. */
function runToEnd(program: string, args: string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'], detached: true });
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      output = (output + text).slice(-4000);
    });
    child.on('error', reject);
    child.on('exit', (code) => {
      child.stderr.destroy(); // the daemon has the other end, too
      if (code === 0) resolve();
      else reject(new Error(`HAProxy does not start: ${alertsOf(output)}`));
    });
  });
}

const alertsOf = (text: string): string =>
  text
    .split('\n')
    .filter((line) => line.includes('[ALERT]'))
    .map((line) => line.replace(/^.*?: /, ''))
    .join('; ') || text.trim();

const masterMs = 10_000;

/** The master re-executes itself after a start and at a reload, and does not answer for a moment. */
async function askMaster(files: HaproxyFiles, command: string): Promise<string> {
  const until = Date.now() + masterMs;
  for (;;) {
    try {
      return await ask(files.masterSocket, command);
    } catch (error) {
      if (Date.now() > until) throw error;
      await pause(20);
    }
  }
}

/** The id of the worker that takes new connections. Resolves when the admin socket is its own, which a reload hands over. */
export async function currentWorker(files: HaproxyFiles): Promise<string> {
  const until = Date.now() + masterMs;
  for (;;) {
    const pid = Number(/^(\d+)\s+worker\s/m.exec(await askMaster(files, 'show proc'))?.[1]);
    const answer = await ask(files.adminSocket, 'show info').catch(() => '');
    if (Number(/^Pid: (\d+)/m.exec(answer)?.[1]) === pid) return runOf(pid);
    if (Date.now() > until) throw new Error('HAProxy has no worker that answers');
    await pause(20);
  }
}

/** The ids of the workers that a reload has replaced, and that still have connections. */
export async function replacedWorkers(files: HaproxyFiles): Promise<string[]> {
  const [, old = ''] = (await askMaster(files, 'show proc')).split('# old workers');
  return [...old.matchAll(/^(\d+)\s+worker\s/gm)].map(([, pid]) => runOf(Number(pid)));
}

const pidOf = (worker: string): number => Number(worker.split('-')[1]);

export const isAlive = (worker: string): boolean => runOf(pidOf(worker)) === worker;

/** Has a worker write to its log. By way of the master, which also knows the workers that a reload has replaced. */
export async function writeToLog(files: HaproxyFiles, worker: string, line: string): Promise<void> {
  await ask(files.masterSocket, `expert-mode on; @!${pidOf(worker)} debug dev log ${line}`);
}

/** Of one run of a worker: a process id may come again. */
function runOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return `haproxy-${pid}-${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`;
  } catch {
    return `haproxy-${pid}-gone`;
  }
}

const reloadMs = 30_000;

/** Loads the files again. Resolves when a new worker has taken over; rejects where the files are refused. */
export async function reload(files: HaproxyFiles): Promise<void> {
  const master = runningMaster(files);
  if (master === null) throw new Error('HAProxy does not run');
  const reloads = async () => {
    const [, count, failed] = /master\s+(\d+) \[failed: (\d+)\]/.exec(await askMaster(files, 'show proc')) ?? [];
    return { count: Number(count), failed: Number(failed) };
  };
  const before = await reloads();
  process.kill(master, 'SIGUSR2');
  const until = Date.now() + reloadMs;
  while (Date.now() < until) {
    await pause(20);
    const now = await reloads();
    if (now.count === before.count) continue;
    if (now.failed > before.failed) throw new Error('HAProxy refuses its configuration');
    return;
  }
  throw new Error('HAProxy does not reload');
}

/** Lets requests under way finish, for some time at most. */
export async function stopMaster(files: HaproxyFiles, drainMs: number): Promise<void> {
  const master = runningMaster(files);
  if (master === null) return;
  process.kill(master, 'SIGUSR1');
  const until = Date.now() + drainMs;
  while (runningMaster(files) === master) {
    if (Date.now() > until) process.kill(master, 'SIGTERM');
    await pause(20);
  }
}

/**
 * Workers that a reload has replaced. Such a worker still takes requests from the connections it has, by the table it
 * had; so it counts as a router until it has ended, or no connection can bring it another request.
 */
export class ReplacedWorkers {
  readonly #requestsForMs: number;
  readonly #until = new Map<string, { state: RouterState; until: number }>();

  /** `requestsForMs`: how long a connection may be idle before its next request. */
  constructor(requestsForMs: number) {
    this.#requestsForMs = requestsForMs;
  }

  add(state: RouterState, nowMs: number): void {
    this.#until.set(state.id, { state, until: nowMs + this.#requestsForMs });
  }

  states(): RouterState[] {
    return [...this.#until.values()].map(({ state }) => state);
  }

  /** Takes out those that get no more requests, and gives their ids. */
  takeEnded(nowMs: number): string[] {
    const ended = [...this.#until].filter(([id, { until }]) => nowMs >= until || !isAlive(id)).map(([id]) => id);
    for (const id of ended) this.#until.delete(id);
    return ended;
  }
}

// A process that is started again whenever it has ended, as systemd does it, on the same ports.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { commandOf } from '../helpers/children.ts';
import { until } from '../helpers/wait.ts';

const restartMs = 500;
const root = fileURLToPath(new URL('../../', import.meta.url));

export interface KeptProcessOptions {
  args: string[];
  env: Record<string, string>;
  logPath: string;
  /** Whether it does its work. */
  answers(): Promise<boolean>;
}

export class KeptProcess {
  readonly #options: KeptProcessOptions;
  /** Each leads a group, parts of which may outlive it. */
  readonly #leaders: number[] = [];
  #child: ChildProcess | null = null;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: KeptProcessOptions) {
    this.#options = options;
    process.on('exit', () => this.#kill());
  }

  start(): void {
    const { args, env, logPath } = this.#options;
    const log = openSync(logPath, 'a');
    const child = spawn(process.execPath, args, {
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', log, log],
      detached: true, // with all that it starts it is a group, and can be killed as one
    });
    closeSync(log);
    this.#child = child;
    if (child.pid !== undefined) this.#leaders.push(child.pid);
    child.on('exit', () => {
      if (this.#child === child) this.#child = null;
      if (!this.#isClosed) this.#timer = setTimeout(() => this.start(), restartMs);
    });
  }

  /** null: it has ended and is about to be started. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Resolves when it does its work. */
  async ready(timeoutMs = 120_000): Promise<void> {
    const { args, answers, logPath } = this.#options;
    const answersNow = () => this.#child !== null && answers().catch(() => false);
    await until(`${args[0]} to answer (its log: ${logPath})`, answersNow, timeoutMs, 200);
  }

  /** Asks it to end, and waits. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#child?.kill('SIGTERM');
    await until('its end', () => this.#child === null, 20_000).catch(() => {});
    this.#kill();
  }

  #kill(): void {
    for (const pid of membersOf(this.#leaders)) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It ended meanwhile.
      }
    }
  }
}

/** Processes of these groups that run something of this folder: a number may have become another's by now. */
function membersOf(leaders: number[]): number[] {
  const groupOf = (pid: number) => {
    try {
      return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')[2]);
    } catch {
      return 0;
    }
  };
  const pids = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
  return pids.filter((pid) => leaders.includes(groupOf(pid)) && commandOf(pid).includes(root));
}

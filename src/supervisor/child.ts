// A process that the supervisor started: what it reports, and how it ends.
import { type ChildProcess, type SendHandle, spawn } from 'node:child_process';
import type { ChildReport } from './supervisor-protocol.ts';

export interface ChildOptions {
  /** For the log. */
  name: string;
  entry: string;
  /** For Node; those that this process was given come after them. */
  flags?: readonly string[];
  env: Record<string, string | undefined>;
  /** Become its file descriptors 3, 4, … */
  sockets: number[];
}

export interface Ending {
  exitCode: number | null;
  signal: string | null;
  /** The reason it gave before it ended. */
  failure: string | null;
}

/** It ended, or took too long, before it reported what was waited for. */
export class ChildFailed extends Error {}

const killMarginMs = 10_000;

export class Child {
  readonly name: string;
  readonly entry: string;
  readonly ended: Promise<Ending>;
  /** null: it could not be started at all. */
  readonly #process: ChildProcess | null;
  readonly #reported = new Set<string>();
  readonly #listeners = new Set<() => void>();
  #failure: string | null = null;
  #ending: Ending | null = null;
  /** When it said last that it is well. */
  #wellAt = performance.now();
  #trouble: string | null = null;

  /** Never throws: one that cannot be started is one that has ended, and is started again like any other. */
  constructor({ name, entry, flags = [], env, sockets }: ChildOptions) {
    this.name = name;
    this.entry = entry;
    const { promise, resolve } = Promise.withResolvers<Ending>();
    this.ended = promise;
    const end = (exitCode: number | null, signal: string | null) => {
      this.#ending ??= { exitCode, signal, failure: this.#failure };
      this.#notify();
      resolve(this.#ending);
    };
    // Its program may be missing or half written at this moment, while an installation replaces it. Some of these errors
    // are thrown (ETXTBSY), others are events (ENOENT, EAGAIN).
    const failToStart = (error: Error) => {
      this.#failure = error.message;
      end(null, null);
    };
    let started: ChildProcess | null = null;
    try {
      started = spawn(process.execPath, [...flags, ...process.execArgv, entry], {
        env,
        stdio: ['ignore', 'inherit', 'inherit', ...sockets, 'ipc'],
      });
      started.on('message', (report: ChildReport) => this.#hear(report));
      started.on('exit', end);
      started.on('error', (error) => {
        if (started?.pid === undefined) failToStart(error);
      });
    } catch (error) {
      failToStart(error as Error);
    }
    this.#process = started;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** For how long it has not said that it is well, and what it said instead; null: nothing. */
  get silence(): { forMs: number; trouble: string | null } {
    return { forMs: performance.now() - this.#wellAt, trouble: this.#trouble };
  }

  /** This process could not listen to it meanwhile. */
  forgiveSilence(): void {
    this.#wellAt = performance.now();
  }

  get hasEnded(): boolean {
    return this.#ending !== null;
  }

  /** Resolves once it has reported this; rejects with ChildFailed. */
  async waitFor(what: keyof ChildReport, withinMs = 2 ** 31 - 1): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const check = () => {
      if (this.#reported.has(what)) resolve();
      else if (this.#ending)
        reject(new ChildFailed(`${this.name} ${describeEnding(this.#ending)} before it was ready`));
    };
    const late = () => reject(new ChildFailed(`${this.name} was not ready within ${withinMs / 1000} s`));
    const timer = setTimeout(late, withinMs);
    this.#listeners.add(check);
    check();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      this.#listeners.delete(check);
    }
  }

  /** Resolves once it has answered; an earlier answer of the same kind does not count. */
  ask(message: object, answer: keyof ChildReport, withinMs: number, socket?: object): Promise<void> {
    this.#reported.delete(answer);
    this.send(message, socket);
    return this.waitFor(answer, withinMs);
  }

  /** Does nothing if it has ended. */
  send(message: object, socket?: object): void {
    if (this.#process?.connected) this.#process.send(message, socket as SendHandle | undefined, {}, () => {});
  }

  kill(signal: NodeJS.Signals): void {
    if (this.#process?.pid !== undefined) this.#process.kill(signal);
  }

  /** It was told to end, and is killed if it does not. */
  async endWithin(drainMs: number): Promise<void> {
    const force = setTimeout(() => this.kill('SIGKILL'), drainMs + killMarginMs);
    await this.ended;
    clearTimeout(force);
  }

  /** The supervisor may end before it does. */
  leaveBehind(): void {
    this.#process?.unref();
    this.#process?.channel?.unref();
  }

  #hear(report: ChildReport): void {
    if (report.failed !== undefined) this.#failure = report.failed;
    if (report.trouble === undefined) this.#wellAt = performance.now();
    this.#trouble = report.trouble ?? null;
    for (const key of Object.keys(report)) this.#reported.add(key);
    this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

export function describeEnding({ exitCode, signal, failure }: Ending): string {
  const how =
    signal !== null ? `was ended by ${signal}` : exitCode !== null ? `ended with exit code ${exitCode}` : 'failed';
  return failure === null ? how : `${how} (${failure})`;
}

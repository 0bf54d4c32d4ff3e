// Keeps one process of a kind running: when it ends by itself, or no longer says that it is well, the next one is started.
// The first time at once, because connections are waiting; then with backoff.
import { type Child, ChildFailed, describeEnding } from './child.ts';
import type { SupervisorLog } from './supervisor-log.ts';

export class Keeper {
  readonly #start: () => Child;
  readonly #log: SupervisorLog;
  #current: Child | null = null;
  #earlyEnds = 0;
  readonly #watchdogMs: number;
  readonly #firstReady = Promise.withResolvers<void>();
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  /** `watchdogMs`: how long one may be silent; 0: for ever. */
  constructor(start: () => Child, log: SupervisorLog, watchdogMs: number) {
    this.#start = start;
    this.#log = log;
    this.#watchdogMs = watchdogMs;
  }

  /** Resolves as soon as one was ready. */
  get firstReady(): Promise<void> {
    return this.#firstReady.promise;
  }

  /** null: none runs at this moment. */
  get current(): Child | null {
    return this.#current;
  }

  start(): Child {
    if (this.#closed) throw new ChildFailed('the service is stopping');
    const child = this.#start();
    this.keep(child);
    return child;
  }

  /** From now on this is the one, in place of any other. */
  keep(child: Child): void {
    clearTimeout(this.#timer);
    if (this.#closed) {
      child.kill('SIGTERM');
      return;
    }
    this.#current = child;
    let readyAt: number | null = null;
    let watchdog: Watchdog | null = null;
    child.waitFor('ready').then(
      () => {
        readyAt = performance.now();
        this.#firstReady.resolve();
        // Not before: what it does to get ready, such as changing the database, takes as long as it takes.
        if (this.#watchdogMs > 0) watchdog = new Watchdog(child, this.#watchdogMs, () => this.#killSilent(child));
      },
      () => {},
    );
    void child.ended.then((ending) => {
      watchdog?.stop();
      if (this.#current !== child) return;
      this.#current = null;
      const readyForMs = readyAt === null || watchdog?.hasBarked ? null : performance.now() - readyAt;
      this.#earlyEnds = countEarlyEnds(this.#earlyEnds, readyForMs);
      const waitMs = restartAfterMs(this.#earlyEnds);
      const fields = { process: child.name, pid: child.pid, exit_code: ending.exitCode, signal: ending.signal };
      this.#log.error({ ...fields, restart_in_ms: waitMs }, `${child.name} ${describeEnding(ending)}`);
      this.#timer = setTimeout(() => this.start(), waitMs);
    });
  }

  /** Stops watching the process, which the caller takes over until it gives this keeper the next one, or the same again. */
  detach(): void {
    clearTimeout(this.#timer);
    this.#current = null;
  }

  /** None is started any more. */
  close(): void {
    this.#closed = true;
    this.detach();
  }

  /** One that is being replaced or stopped has a time limit of its own. */
  #killSilent(child: Child): boolean {
    if (this.#current !== child) return false;
    const { forMs, trouble } = child.silence;
    const fields = { process: child.name, pid: child.pid, silent_ms: Math.round(forMs), ...(trouble && { trouble }) };
    this.#log.error(fields, `${child.name} hangs: it is killed and started again`);
    child.kill('SIGKILL');
    return true;
  }
}

const checkEveryMs = 1000;

class Watchdog {
  readonly #timer: NodeJS.Timeout;
  #checkedAt = performance.now();
  hasBarked = false;

  constructor(child: Child, limitMs: number, bark: () => boolean) {
    child.forgiveSilence();
    this.#timer = setInterval(() => {
      const now = performance.now();
      // This process, or the whole machine, stood still: what it missed is still to be read.
      if (now - this.#checkedAt > 2 * checkEveryMs) child.forgiveSilence();
      this.#checkedAt = now;
      if (!this.hasBarked && child.silence.forMs > limitMs) this.hasBarked = bark();
    }, checkEveryMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

const firstWaitMs = 100;
const longestWaitMs = 10_000;
/** A process that was ready for this long did not end because of how it started. */
const settledMs = 1000;

/** How often in a row, the end of now included, it ended before it was ready or soon after. */
export function countEarlyEnds(before: number, readyForMs: number | null): number {
  return readyForMs !== null && readyForMs >= settledMs ? 0 : before + 1;
}

export function restartAfterMs(earlyEnds: number): number {
  return earlyEnds === 0 ? 0 : Math.min(firstWaitMs * 2 ** (earlyEnds - 1), longestWaitMs);
}

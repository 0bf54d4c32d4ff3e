// Keeps one process of a kind running: when it ends by itself, the next one is started. The first time at once, because
// connections are waiting; then with backoff.
import { type Child, ChildFailed, describeEnding } from './child.ts';
import type { SupervisorLog } from './supervisor-log.ts';

export class Keeper {
  readonly #start: () => Child;
  readonly #log: SupervisorLog;
  #current: Child | null = null;
  #earlyEnds = 0;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(start: () => Child, log: SupervisorLog) {
    this.#start = start;
    this.#log = log;
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
    child.waitFor('ready').then(
      () => {
        readyAt = performance.now();
      },
      () => {},
    );
    void child.ended.then((ending) => {
      if (this.#current !== child) return;
      this.#current = null;
      this.#earlyEnds = countEarlyEnds(this.#earlyEnds, readyAt === null ? null : performance.now() - readyAt);
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

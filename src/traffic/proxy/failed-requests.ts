// A line in the log for a request that got an error response because of its instances, to be found by the request id that
// its visitor was shown. There are only so many a second: an instance that is down may fail thousands of requests.
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';

const linesPerSecond = 10;

export interface FailedRequest {
  requestId: string;
  host: string;
  revision: number;
  status: number;
  /** What the last attempt failed with. */
  code: string;
  reason: string;
  tookMs: number;
}

export class FailedRequests {
  readonly #clock: Clock;
  readonly #log: Log;
  #second = 0;
  #lines = 0;
  #notLogged = 0;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  note(failed: FailedRequest): void {
    const second = Math.floor(this.#clock.now() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#lines = 0;
    }
    if (this.#lines === linesPerSecond) {
      this.#notLogged++;
      return;
    }
    this.#lines++;
    const others = this.#notLogged > 0 ? { notLogged: this.#notLogged } : {};
    this.#notLogged = 0;
    this.#log.warn({ ...failed, ...others }, 'a request failed');
  }
}

// What HAProxy's log says of requests, as measurements. HAProxy keeps the latest lines in memory, and gives a new
// reader those it still has. So a process that follows after another counts the same lines again, and comes
// to the same absolute numbers.
import type { Clock } from '../../lib/clock.ts';
import type { MeasuredBatch } from '../data-plane.ts';
import { outcomeOf, TrafficCounter } from '../measurements.ts';
import { abandonedAfterMs, type Outcome, type Unit } from '../request-detail.ts';
import type { HaproxyFiles } from './haproxy-files.ts';
import { writeToLog } from './haproxy-process.ts';
import { follow } from './haproxy-socket.ts';

export interface RevisionUse {
  project: string;
  environment: string;
  revision: number;
}

export interface LoggedRequest {
  at: number;
  project: string;
  environment: string;
  revision: number;
  tookMs: number;
  outcome: Outcome;
  /** null: no canary runs. */
  unit: Unit | null;
}

/** The first letter says who ended the session: the server, its time limit, or HAProxy itself for want of a server. */
const isOfInstance = (ended: string): boolean => 'SsPRI'.includes(ended[0]!);

const isOfVisitor = (ended: string): boolean => 'Cc'.includes(ended[0]!);

/** The visitor did not send all of its body, so the instance could not answer. What was sent includes the head. */
const isStalledUpload = (status: string, uploaded: string, length: string): boolean =>
  status === '504' && Number(uploaded) < Number(length);

/** Null for a line that is not about a routed request. */
export function readLogLine(line: string): LoggedRequest | null {
  const fields = line.split(' ');
  if (fields.length !== 15 || fields[1] === '-') return null;
  const [at, project, environment, revision, status, queued, connected, answered, all, ended, ...rest] = fields;
  const [uploaded, length, bucket, instance, path] = rest;
  const waited = Math.max(0, Number(queued)) + Math.max(0, Number(connected));
  const hasAnswer = Number(answered) >= 0;
  const tookMs = hasAnswer ? waited + Number(answered) : Math.max(0, Number(all));
  const outcome = outcomeOfLine(Number(status), ended!, isStalledUpload(status!, uploaded!, length!));
  const isAbandoned = outcome === 'ok' && isOfVisitor(ended!) && !hasAnswer && tookMs >= abandonedAfterMs;
  return {
    at: Number(at),
    project: project!,
    environment: environment!,
    revision: Number(revision),
    tookMs,
    outcome: isAbandoned ? 'abandoned' : outcome,
    unit: bucket === '-' ? null : { bucket: Number(bucket), instance: instance!, path: path! },
  };
}

function outcomeOfLine(status: number, ended: string, stalled: boolean): Outcome {
  if (stalled) return 'ok';
  if (isOfInstance(ended)) return 'error';
  // For a visitor that went away HAProxy logs a 400 of its own.
  return isOfVisitor(ended) && status < 500 ? 'ok' : outcomeOf(status);
}

/** While lines come faster than this, a new reader still gets those of before; after them every bucket is complete. */
const quietMs = 200;
const longestCatchUpMs = 10_000;

const wakingLine = 'wake';

/** Follows the log of one HAProxy worker until that has ended. */
export class RequestLog {
  readonly router: string;
  readonly #counter: TrafficCounter;
  readonly #files: HaproxyFiles;
  readonly #clock: Clock;
  readonly #following: { close(): void };
  readonly #startedAt: number;
  #lineAt: number;
  /** The last line before the latest silence that was broken. */
  #wokenAfter = 0;
  #caughtUp = false;
  hasEnded = false;

  constructor(router: string, files: HaproxyFiles, clock: Clock) {
    this.router = router;
    this.#files = files;
    this.#clock = clock;
    this.#counter = new TrafficCounter(clock);
    this.#startedAt = clock.now();
    this.#lineAt = this.#startedAt;
    this.#following = follow(
      files.adminSocket,
      'show events requests -w',
      (line) => this.#add(line),
      () => {
        this.hasEnded = true;
      },
    );
  }

  #add(line: string): void {
    if (line === wakingLine) return;
    this.#lineAt = this.#clock.now();
    const request = readLogLine(line);
    if (request === null) return;
    const counter = this.#counter.of(request.project, request.environment, request.revision);
    counter.countRequest(request.at, request.tookMs, request.outcome, request.unit);
    counter.retired = true; // when it retires is not known here: it goes with its last bucket, and comes back with a request
  }

  /** For how long requests to this revision have been waiting for an answer. */
  setWaiting({ project, environment, revision }: RevisionUse, agesMs: readonly number[]): void {
    const counter = this.#counter.of(project, environment, revision);
    counter.setWaiting(this.#clock.now(), agesMs);
    counter.retired = true;
  }

  take(): MeasuredBatch[] {
    const nowMs = this.#clock.now();
    const isQuiet = nowMs - this.#lineAt >= quietMs;
    if (isQuiet) this.#wakeReader();
    this.#caughtUp ||= isQuiet || nowMs - this.#startedAt >= longestCatchUpMs;
    const taken = this.#caughtUp ? this.#counter.take() : null;
    return taken === null ? [] : [{ router: this.router, ...taken }];
  }

  /**
   * HAProxy 2.6 does not wake its reader for a line that it writes in the moment in which that one starts to wait. Such a
   * line comes with the next, so a silence is broken by a line that is ignored.
   */
  #wakeReader(): void {
    if (this.#wokenAfter === this.#lineAt || this.hasEnded) return;
    this.#wokenAfter = this.#lineAt;
    writeToLog(this.#files, this.router, wakingLine).catch(() => {
      this.#wokenAfter = 0; // it hangs, or reloads: tried again when the next measurements are taken
    });
  }

  close(): void {
    this.#following.close();
  }
}

/** The bit of a session whose response has not begun (AN_RES_WAIT_HTTP). */
const waitsForResponse = 0x400000;

/** What `show sess` says of requests that wait for an answer: their backend, and for how long. */
export function readSessions(text: string): { backend: string; ageMs: number }[] {
  return text.split('\n').flatMap((line) => {
    const [, backend, age, flags] = / be=(\S+) .* age=(\S+) .* rp\[[^\]]*an=([0-9a-f]+)h/.exec(line) ?? [];
    if (!backend || (Number.parseInt(flags!, 16) & waitsForResponse) === 0) return [];
    // Ages are differences of whole seconds: one may be up to a second too many.
    return [{ backend, ageMs: Math.max(0, readAge(age!) - 1000) }];
  });
}

const unitMs: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `1m4s`. */
const readAge = (text: string): number =>
  [...text.matchAll(/(\d+)([smhd])/g)].reduce((sum, [, count, unit]) => sum + Number(count) * unitMs[unit!]!, 0);

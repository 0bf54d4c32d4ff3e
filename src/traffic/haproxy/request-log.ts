// What HAProxy's log says of requests, as measurements. HAProxy keeps the latest lines in memory, and gives a new
// reader those it still has. So a process that follows after another counts the same lines again, and comes
// to the same absolute numbers.
import { Memo } from '../../lib/bounded-cache.ts';
import type { Clock } from '../../lib/clock.ts';
import type { MeasuredBatch } from '../data-plane.ts';
import { outcomeOf, TrafficCounter } from '../measurements.ts';
import { abandonedAfterMs, type Outcome, routePattern, type Unit } from '../request-detail.ts';
import { readServerName } from './backends.ts';
import { readRoute } from './haproxy-config.ts';
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
  /** The revision whose instance answered, because none of its own took a connection; null: one of its own did, or none. */
  standIn: number | null;
}

/** The first letter says who ended the session: the server, its time limit, or HAProxy itself for want of a server. */
const isOfInstance = (ended: string): boolean => 'SsPRI'.includes(ended[0]!);

const isOfVisitor = (ended: string): boolean => 'Cc'.includes(ended[0]!);

/** The visitor did not send all of its body, so the instance could not answer. What was sent includes the head. */
const isStalledUpload = (status: string, uploaded: string, length: string): boolean =>
  status === '504' && Number(uploaded) < Number(length);

/** A busy host has the same route and the same few servers in its lines. */
const routesRead = new Memo<RevisionUse>(1000);
const serversRead = new Memo<ReturnType<typeof readServerName>>(1000);

/** Null for a line that is not about a routed request. */
export function readLogLine(line: string): LoggedRequest | null {
  const fields = line.split(' ');
  if (fields.length !== 12 || fields[1] === '-') return null;
  const [at, route, status, queued, connected, answered, all, ended, uploaded, length, server, unit] = fields;
  const { instance, revision: standIn } = serversRead.get(server!, readServerName);
  const waited = Math.max(0, Number(queued)) + Math.max(0, Number(connected));
  const hasAnswer = Number(answered) >= 0;
  const tookMs = hasAnswer ? waited + Number(answered) : Math.max(0, Number(all));
  const outcome = outcomeOfLine(Number(status), ended!, isStalledUpload(status!, uploaded!, length!));
  const isAbandoned = outcome === 'ok' && isOfVisitor(ended!) && !hasAnswer && tookMs >= abandonedAfterMs;
  const { project, environment, revision: stable } = routesRead.get(route!, readRoute);
  // Of a canary's environment: revision, bucket and path. A path may have any character but a blank.
  const [, revision, bucket, path] = (unit !== '-' && /^(\d+)\|(\d+)\|(.*)$/.exec(unit!)) || [];
  return {
    project,
    environment,
    at: Number(at),
    revision: revision === undefined ? stable : Number(revision),
    tookMs,
    outcome: isAbandoned ? 'abandoned' : outcome,
    unit: bucket === undefined ? null : { bucket: Number(bucket), instance, pattern: routePattern(path!) },
    standIn,
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
    if (request.standIn === null) {
      this.#count(request);
      return;
    }
    // Both are counted, as the built-in proxy does: the side that the visitor belongs to could not answer.
    this.#count({ ...request, outcome: 'error', unit: request.unit && { ...request.unit, instance: '' } });
    this.#count({ ...request, revision: request.standIn });
  }

  #count({ project, environment, revision, at, tookMs, outcome, unit }: LoggedRequest): void {
    const counter = this.#counter.of(project, environment, revision);
    counter.countRequest(at, tookMs, outcome, unit);
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

/** What `show sess` says of requests that wait for an answer: their backend, who stands in for it, and for how long. */
export function readSessions(text: string): { backend: string; standIn: number | null; ageMs: number }[] {
  return text.split('\n').flatMap((line) => {
    const [, backend, server, age, flags] =
      / be=(\S+) srv=(\S+) .*age=(\S+) .* rp\[[^\]]*an=([0-9a-f]+)h/.exec(line) ?? [];
    if (!backend || (Number.parseInt(flags!, 16) & waitsForResponse) === 0) return [];
    // Ages are differences of whole seconds: one may be up to a second too many.
    const standIn = readServerName(server!).revision;
    return [{ backend, standIn, ageMs: Math.max(0, readAge(age!) - 1000) }];
  });
}

const unitMs: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `1m4s`. */
const readAge = (text: string): number =>
  [...text.matchAll(/(\d+)([smhd])/g)].reduce((sum, [, count, unit]) => sum + Number(count) * unitMs[unit!]!, 0);

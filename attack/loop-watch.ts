// Loaded into the processes of the service that is attacked (NODE_OPTIONS). In the control process it notes how long the event
// loop stood still: nothing was answered meanwhile. Time in which the process was ready and had no processor is the machine's
// and does not count.
import { appendFileSync, openSync, readFileSync, readSync } from 'node:fs';

/** A line of the file. */
export interface Standstill {
  at: number;
  /** Without the time spent waiting for a processor, and with it. */
  ms: number;
  wallMs: number;
}

const tickMs = 10;
/** Shorter ones are not noted. */
const leastMs = 30;

const file = process.env.LOOP_WATCH_FILE;
if (file !== undefined && process.argv[1]?.endsWith('control.js')) watchLoop(file);

function watchLoop(path: string): void {
  const waitedMs = waitingTime();
  let last = { at: performance.now(), waitedMs: waitedMs() };
  setInterval(() => {
    const now = { at: performance.now(), waitedMs: waitedMs() };
    const wallMs = now.at - last.at - tickMs;
    const ms = wallMs - (now.waitedMs - last.waitedMs);
    last = now;
    if (ms < leastMs) return;
    const line: Standstill = { at: Date.now(), ms: Math.round(ms), wallMs: Math.round(wallMs) };
    appendFileSync(path, `${JSON.stringify(line)}\n`);
  }, tickMs).unref();
}

/** How long the main thread was ready to run and did not: the second number of schedstat, in nanoseconds. */
function waitingTime(): () => number {
  const buffer = Buffer.alloc(100);
  const schedstat = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r');
  return () => Number(buffer.toString('latin1', 0, readSync(schedstat, buffer, 0, 100, 0)).split(' ')[1]) / 1e6;
}

/** What was noted since `sinceMs` by the wall clock. */
export function standstillsSince(path: string, sinceMs: number): Standstill[] {
  const lines = readFileSync(path, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as Standstill).filter(({ at, wallMs }) => at - wallMs >= sinceMs);
}

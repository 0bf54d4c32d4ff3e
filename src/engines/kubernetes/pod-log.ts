// The log of a pod. The API gives lines that begin with a time, and does not say which stream a line came from.
import type { Readable } from 'node:stream';
import { encodeLine, latestThatFit, textBytesOf, timeMs, timeText } from '../../lib/log-lines.ts';
import { disorderMs, type LogPosition, positionBehind, Resumption } from '../../lib/log-position.ts';
import type { LogLine } from '../engine.ts';
import { isStatus, type KubeClient, linesOf, pause, type Query } from './kube-client.ts';
import type { Pod } from './kube-objects.ts';
import { containerName } from './manifests.ts';
import { podPath } from './object-names.ts';

/** Longer ones end the reading. */
const maxLineBytes = 4 * 1024 * 1024;

/** `previous`: of the program that ran before the one that runs now. */
interface LogOptions extends Query {
  follow?: boolean;
  previous?: boolean;
  tailLines?: number;
}

/** `sinceMs` counts in whole seconds: some lines before it come too. null: there is no such pod, or it has no log yet. */
async function openLog(
  client: KubeClient,
  { metadata }: Pod,
  sinceMs: number,
  options: LogOptions,
  signal: AbortSignal,
): Promise<Readable | null> {
  const sinceTime = sinceMs > 0 ? `${new Date(sinceMs).toISOString().slice(0, 19)}Z` : undefined;
  const query = { container: containerName, timestamps: true, sinceTime, ...options };
  try {
    return await client.stream(`${podPath(metadata.namespace!, metadata.name)}/log`, query, signal);
  } catch (error) {
    // 400: its container has not been started.
    if (isStatus(error, 400, 404)) return null;
    throw error;
  }
}

const timed = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) (.*?)\r?$/s;

/** `2026-11-15T21:00:00.123456789Z text`; nodes write the time of their own zone, and leave out zeros at its end. null:
 * said by the kubelet, not by the program. */
export function readLine(raw: string): { time: string; ms: number; text: string } | null {
  const [, seconds, digits = '', zone = '', text = ''] = timed.exec(raw) ?? [];
  if (seconds === undefined) return null;
  const fraction = digits.padEnd(9, '0');
  const ms = Date.parse(`${seconds}.${fraction.slice(0, 3)}${zone}`);
  return { time: timeText(ms, Number(fraction.slice(3))), ms, text };
}

interface LogQuery {
  tail: number;
  sinceMs: number;
  maxBytes: number;
  previous: boolean;
}

const timeoutMs = 10_000;

/** The latest lines, oldest first. */
export async function readPodLog(client: KubeClient, pod: Pod, query: LogQuery): Promise<LogLine[]> {
  const { tail, sinceMs, maxBytes, previous } = query;
  const options = { tailLines: tail, ...(previous && { previous }) };
  const stream = await openLog(client, pod, sinceMs, options, AbortSignal.timeout(timeoutMs));
  if (!stream) return [];
  let lines: LogLine[] = [];
  let bytes = 0;
  for await (const raw of linesOf(stream, maxLineBytes)) {
    const line = readLine(raw.toString('utf8'));
    if (!line || line.ms <= sinceMs) continue;
    lines.push({ at: line.ms, stream: 'stdout', text: line.text });
    bytes += line.text.length;
    if (bytes < 2 * maxBytes) continue;
    lines = latestThatFit(lines, maxBytes);
    bytes = textBytesOf(lines);
  }
  return latestThatFit(lines.slice(-tail), maxBytes);
}

/** What there is to follow. */
export interface Followed {
  pod: Pod;
  /** Its program runs, or is about to. */
  goesOn: boolean;
  /** Its program ended and was started again: what ended is what counts. */
  previous: boolean;
}

const againMs = 250;

/**
 * Follows what an instance prints, from one pod to the next where the cluster replaces it. Each round first reads
 * what is new since the position, and reports lost lines; then it follows from a line that is certain to be there.
 * `find`: null once there is no instance.
 */
export async function* followPods(
  client: KubeClient,
  find: () => Promise<Followed | null>,
  after: LogPosition | null,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  let position = after;
  while (!signal.aborted && !client.closing.aborted) {
    const found = await find();
    if (!found) return;
    const { pod, previous } = found;
    for (const follow of found.goesOn ? [false, true] : [false]) {
      const options = { ...(follow && { follow }), ...(previous && { previous }) };
      for await (const lines of readFrom(client, pod, position, options, signal)) {
        position = positionBehind(position, lines);
        yield lines;
      }
    }
    if (!found.goesOn) return;
    await pause(againMs, signal);
  }
}

async function* readFrom(
  client: KubeClient,
  pod: Pod,
  position: LogPosition | null,
  options: LogOptions,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const sinceMs = position ? timeMs(position.time) - disorderMs : 0;
  const resumption = new Resumption(position);
  let stream: Readable | null = null;
  try {
    stream = await openLog(client, pod, sinceMs, options, signal);
    if (!stream) return;
    for await (const raw of linesOf(stream, maxLineBytes)) {
      const line = readLine(raw.toString('utf8'));
      const lines = line && resumption.take(encodeLine({ time: line.time, stream: 'stdout', text: line.text }));
      if (lines && lines.length > 0) yield lines;
    }
    const held = resumption.giveUp();
    if (held) yield held;
  } catch (error) {
    if (!signal.aborted && !client.closing.aborted) throw error;
  } finally {
    stream?.destroy();
  }
}

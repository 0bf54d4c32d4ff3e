// Reads what a container prints: its latest lines, or all from a position on.
import type { Readable } from 'node:stream';
import { timeMs } from '../../lib/log-lines.ts';
import { disorderMs, type LogPosition, positionBehind, RepeatFilter } from '../../lib/log-position.ts';
import { ChunkGatherer } from './chunk-gatherer.ts';
import type { ContainerInspectInfo, DockerApi } from './docker-api.ts';
import { type DockerClient, isErrorResponse } from './docker-client.ts';
import { FrameLines, LatestFrames } from './log-frames.ts';

/** Of lines as they are stored; in Docker's files, which hold 10 MB each, they take up to three times as much. */
const fastBytesPerS = 2 * 1024 * 1024;
/** A reading that gave less has caught up. */
const caughtUpBytes = 256 * 1024;
/** A log that is followed from a little before a position does not have it if nothing more comes for so long. */
const quietMs = 5000;
const againMs = 250;

/**
 * Docker keeps a log of two files, which it rotates. A follower that is slower than the program silently loses what
 * was rotated away. So a program that prints a lot is not followed but read again and again, each time from the last
 * line on: either that line is still there, and nothing was lost, or a line reports the loss. The same holds for a
 * reader that was away, until it has caught up.
 */
export async function* followContainer(
  client: DockerClient,
  container: string,
  after: LogPosition | null,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  let position = after;
  let mode: 'follow' | 'read' | 'last' = after ? 'read' : 'follow';
  while (!signal.aborted && !client.closing.aborted) {
    let bytes = 0;
    const pace = { bytes: 0, since: performance.now() };
    for await (const lines of readLog(client, container, position, mode === 'follow', signal)) {
      position = positionBehind(position, lines);
      bytes += lines.length;
      yield lines;
      if (mode === 'follow' && isFast(pace, lines.length)) break;
    }
    if (mode === 'last' || signal.aborted) return;
    if (!(await isRunning(client, container))) mode = 'last';
    else if (mode === 'follow' || bytes > caughtUpBytes) mode = 'read';
    else mode = 'follow';
    if (bytes === 0) await new Promise((resolve) => setTimeout(resolve, againMs));
  }
}

function isFast(pace: { bytes: number; since: number }, bytes: number): boolean {
  const now = performance.now();
  if (now - pace.since > 1000) Object.assign(pace, { bytes: 0, since: now });
  pace.bytes += bytes;
  return pace.bytes > fastBytesPerS;
}

async function isRunning({ docker, call, timeouts }: DockerClient, container: string): Promise<boolean> {
  try {
    const { State } = await call(timeouts.read, 'unavailable', (signal) =>
      docker.request<ContainerInspectInfo>('GET', `/containers/${container}/json`, { signal }),
    );
    return State.Running || State.Status === 'created';
  } catch (error) {
    if (isErrorResponse(error, 404)) return false;
    throw error;
  }
}

/** From behind the position to the end, or, where it is followed, until the container ends. */
async function* readLog(
  client: DockerClient,
  container: string,
  position: LogPosition | null,
  follow: boolean,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const stalled = new AbortController();
  const watchdog = setTimeout(() => stalled.abort(), client.timeouts.read);
  const abortSignal = AbortSignal.any([signal, client.closing, stalled.signal]);
  const once = new RepeatFilter(position);
  const frames = new FrameLines();
  let stream: Readable | null = null;
  try {
    const since = position ? { since: ((timeMs(position.time) - disorderMs) / 1000).toFixed(3) } : {};
    stream = await openLog(client.docker, container, { follow, ...since }, abortSignal);
    if (follow) clearTimeout(watchdog);
    const gathering = new ChunkGatherer(stream);
    for (;;) {
      const data = await gathering.next(follow && once.holdsBack ? quietMs : undefined);
      if (data === 'end') break;
      if (!follow) watchdog.refresh();
      const lines = data === 'quiet' ? once.giveUp() : once.take(frames.add(data));
      if (lines && lines.length > 0) yield lines;
    }
    const held = once.giveUp();
    if (held) yield held;
  } catch (error) {
    if (!signal.aborted && !isErrorResponse(error, 404)) throw error;
  } finally {
    clearTimeout(watchdog);
    stream?.destroy();
  }
}

interface LogWindow {
  tail: number;
  sinceMs: number;
  maxBytes: number;
  abortSignal: AbortSignal;
}

/** The latest frames that fit, oldest first. */
export async function readLatestFrames(
  { docker }: DockerClient,
  container: string,
  { tail, sinceMs, maxBytes, abortSignal }: LogWindow,
): Promise<Buffer> {
  const frames = new LatestFrames(maxBytes);
  const stream = await openLog(docker, container, { tail, since: sinceMs / 1000 }, abortSignal);
  for await (const chunk of stream) frames.add(chunk as Buffer);
  return frames.bytes();
}

function openLog(docker: DockerApi, container: string, window: object, signal: AbortSignal): Promise<Readable> {
  const query = { stdout: true, stderr: true, timestamps: true, ...window };
  return docker.stream('GET', `/containers/${container}/logs`, { query, signal });
}

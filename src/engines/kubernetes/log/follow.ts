// Follows what an instance prints, from one pod to the next should the cluster replace it. Each round first reads to the end
// what is new behind the position, and says where lines were lost; then it follows, from a line that is surely there.
import type { Readable } from 'node:stream';
import { encodeLine, timeMs } from '../../../lib/log-lines.ts';
import { disorderMs, type LogPosition, positionBehind, Resumption } from '../../../lib/log-position.ts';
import { type KubeClient, pause } from '../api/client.ts';
import { linesOf } from '../api/lines.ts';
import type { Pod } from '../api/objects.ts';
import { type LogOptions, maxLineBytes, openLog, readLine } from './open.ts';

/** What there is to follow. */
export interface Followed {
  pod: Pod;
  /** Its program runs, or is about to. */
  goesOn: boolean;
  /** Its program ended and was started again: what ended is what counts. */
  previous: boolean;
}

const againMs = 250;

/** `find`: null once there is no instance. */
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

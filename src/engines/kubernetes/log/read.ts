// The latest lines of an instance.
import { latestThatFit, textBytesOf } from '../../../lib/log-lines.ts';
import type { LogLine } from '../../engine.ts';
import type { KubeClient } from '../api/client.ts';
import { linesOf } from '../api/lines.ts';
import type { Pod } from '../api/objects.ts';
import { maxLineBytes, openLog, readLine } from './open.ts';

interface LogQuery {
  tail: number;
  sinceMs: number;
  maxBytes: number;
  previous: boolean;
}

const timeoutMs = 10_000;

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

// What an instance printed. Kubernetes does not say which stream a line came from.
import { latestThatFit } from '../../lib/latest-lines.ts';
import type { LogLine } from '../engine.ts';
import type { KubeClient } from './api/client.ts';
import { isStatus } from './api/kube-error.ts';
import { linesOf } from './api/lines.ts';
import type { Pod } from './api/objects.ts';
import { podPath } from './context.ts';
import { containerName } from './objects/replica-set.ts';

interface LogQuery {
  tail: number;
  sinceMs: number;
  maxBytes: number;
  /** Of the program that ran before the one that runs now. */
  previous: boolean;
}

const maxLineBytes = 4 * 1024 * 1024;
const timeoutMs = 10_000;

/** Empty where there is no such pod, or its program has not begun. */
export async function readPodLog(client: KubeClient, { metadata }: Pod, query: LogQuery): Promise<LogLine[]> {
  const { tail, sinceMs, maxBytes, previous } = query;
  let lines: LogLine[] = [];
  let bytes = 0;
  try {
    const stream = await client.stream(
      `${podPath(metadata.namespace!, metadata.name)}/log`,
      {
        container: containerName,
        timestamps: true,
        tailLines: tail,
        previous: previous || undefined,
        // In whole seconds: what is too old within the first is left out below.
        sinceTime: sinceMs > 0 ? `${new Date(sinceMs).toISOString().slice(0, 19)}Z` : undefined,
      },
      AbortSignal.timeout(timeoutMs),
    );
    for await (const raw of linesOf(stream, maxLineBytes)) {
      const line = readLine(raw.toString('utf8'));
      if (line.at <= sinceMs) continue;
      lines.push(line);
      bytes += line.text.length;
      if (bytes < 2 * maxBytes) continue;
      lines = latestThatFit(lines, maxBytes);
      bytes = lines.reduce((sum, { text }) => sum + text.length, 0);
    }
  } catch (error) {
    // 400: its container has not been started.
    if (isStatus(error, 400, 404)) return [];
    throw error;
  }
  return latestThatFit(lines.slice(-tail), maxBytes);
}

/** `2026-11-15T21:00:00.123456789Z text` */
export function readLine(raw: string): LogLine {
  const space = raw.indexOf(' ');
  const time = raw.slice(0, Math.max(space, 0)).replace(/(\.\d{3})\d+/, '$1');
  return { at: Date.parse(time), stream: 'stdout', text: raw.slice(space + 1).replace(/\r$/, '') };
}

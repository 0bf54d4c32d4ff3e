// A pod's log as the API gives it: lines that begin with a time. Kubernetes does not say which stream a line came from.
import type { Readable } from 'node:stream';
import { timeText } from '../../../lib/log-lines.ts';
import type { KubeClient, Query } from '../api/client.ts';
import { isStatus } from '../api/kube-error.ts';
import type { Pod } from '../api/objects.ts';
import { podPath } from '../objects/names.ts';
import { containerName } from '../objects/replica-set.ts';

/** Longer ones end the reading. */
export const maxLineBytes = 4 * 1024 * 1024;

/** `previous`: of the program that ran before the one that runs now. */
export interface LogOptions extends Query {
  follow?: boolean;
  previous?: boolean;
  tailLines?: number;
}

/** `sinceMs` counts in whole seconds: some lines before it come too. null: there is no such pod, or it has no log yet. */
export async function openLog(
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

// Structured logs: JSON lines, or short lines on a terminal. Fields whose names suggest a secret are redacted at any depth,
// and query strings are never logged.
import { type Logger, pino, stdSerializers } from 'pino';
import { type LogOutput, logOutput } from './output.ts';
import { prettyLine } from './pretty-line.ts';

export type Log = Logger;

interface LogOptions {
  level: string;
  format: 'json' | 'pretty';
}

const secretNames = new Set(['authorization', 'token', 'secret', 'password', 'variables', 'cookie']);
const maxDepth = 8;

/**
 * A copy of the value with secrets redacted. pino can redact a list of paths, but for one line of the access log that
 * takes longer than the request itself.
 */
export function withoutSecrets<T>(value: T, depth = 0): T {
  if (typeof value !== 'object' || value === null || value instanceof Error) return value;
  if (depth > maxDepth) return '[too deep]' as T;
  let copy: Record<string, unknown> | unknown[] | undefined;
  for (const name in value) {
    const item = value[name];
    const shown = secretNames.has(name)
      ? '[redacted]'
      : typeof item === 'object'
        ? withoutSecrets(item, depth + 1)
        : item;
    if (shown === item) continue;
    copy ??= (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
    (copy as Record<string, unknown>)[name] = shown;
  }
  return (copy ?? value) as T;
}

let stamp = { ms: 0, text: '' };

/** Formats the time once per millisecond. */
function timestamp(): string {
  const ms = Date.now();
  if (stamp.ms !== ms) stamp = { ms, text: `,"time":"${new Date(ms).toISOString()}"` };
  return stamp.text;
}

export function createLog({ level, format }: LogOptions): Log {
  return pino(
    {
      level,
      base: null,
      timestamp,
      formatters: { level: (label) => ({ level: label }), log: (fields) => withoutSecrets(fields) },
      serializers: { err: (error) => withoutSecrets(stdSerializers.err(error)) },
    },
    format === 'json' ? logOutput() : prettyStream(logOutput()),
  );
}

const prettyStream = (output: LogOutput): LogOutput => ({
  write: (line) => output.write(`${prettyLine(JSON.parse(line))}\n`),
  flush: (done) => output.flush(done),
});

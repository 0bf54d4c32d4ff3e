// Structured logs: JSON lines, or on a terminal one short line each. What could be a secret is cut out by name wherever
// it stands, and queries are never logged.
import { type DestinationStream, destination, type Logger, pino, stdSerializers } from 'pino';

export type Log = Logger;

export interface LogOptions {
  level: string;
  format: 'json' | 'pretty';
}

const secretNames = new Set(['authorization', 'token', 'secret', 'password', 'variables', 'cookie']);
const maxDepth = 8;

/**
 * The value with what could be a secret cut out. pino's own redaction does the same from a list of paths, and takes
 * longer over one line of the access log than the request it tells of.
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

/** Lines of the same millisecond share their time. */
function timestamp(): string {
  const ms = Date.now();
  if (stamp.ms !== ms) stamp = { ms, text: `,"time":"${new Date(ms).toISOString()}"` };
  return stamp.text;
}

export function createLog({ level, format }: LogOptions): Log {
  const stdout = destination({ dest: 1, sync: false });
  return pino(
    {
      level,
      base: null,
      timestamp,
      formatters: { level: (label) => ({ level: label }), log: (fields) => withoutSecrets(fields) },
      serializers: { err: (error) => withoutSecrets(stdSerializers.err(error)) },
    },
    format === 'json' ? stdout : prettyStream(stdout),
  );
}

function prettyStream(out: DestinationStream): DestinationStream {
  return {
    write(line: string) {
      out.write(`${prettyLine(JSON.parse(line))}\n`);
    },
  };
}

const colours: Record<string, string> = { warn: '\x1b[33m', error: '\x1b[31m', fatal: '\x1b[31m', debug: '\x1b[2m' };

export function prettyLine({ time, level, msg, err, ...rest }: Record<string, unknown>): string {
  const fields = Object.entries(rest)
    .map(([name, value]) => `\x1b[2m${name}=\x1b[0m${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
  const clock = String(time).slice(11, 19);
  const colour = colours[String(level)] ?? '';
  const stack = err && typeof err === 'object' && 'stack' in err ? `\n${err.stack}` : '';
  return `\x1b[2m${clock}\x1b[0m ${colour}${msg ?? ''}\x1b[0m ${fields}${stack}`.trimEnd();
}

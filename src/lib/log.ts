// Structured logs: JSON lines, or on a terminal one short line each. What could be a secret is cut out by name wherever
// it stands, and queries are never logged.
import { type DestinationStream, destination, type Logger, pino } from 'pino';

export type Log = Logger;

export interface LogOptions {
  level: string;
  format: 'json' | 'pretty';
}

const secretNames = ['authorization', 'token', 'secret', 'password', 'variables', 'cookie'];

export function createLog({ level, format }: LogOptions): Log {
  const stdout = destination({ dest: 1, sync: false });
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: secretNames.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]), censor: '[redacted]' },
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

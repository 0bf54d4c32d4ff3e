// Level, message and time of a line that is JSON (as pino, zap, slog, structlog and others write it) or logfmt.
import { logLevels } from '../../contract/logs.ts';

export type LogLevel = (typeof logLevels)[number];

export interface LineFields {
  level: LogLevel | null;
  message: string | null;
  /** Milliseconds since the epoch. */
  loggedAt: number | null;
}

const nothing: LineFields = { level: null, message: null, loggedAt: null };
const maxMessageLength = 20_000;
const names: Record<string, LogLevel> = {
  ...(Object.fromEntries(logLevels.map((level) => [level, level])) as Record<LogLevel, LogLevel>),
  verbose: 'debug',
  information: 'info',
  notice: 'info',
  warning: 'warn',
  err: 'error',
  critical: 'fatal',
  crit: 'fatal',
  panic: 'fatal',
  alert: 'fatal',
  emergency: 'fatal',
};

export function readLineFields(text: string): LineFields {
  if (!text.startsWith('{')) return { ...nothing, level: logfmtLevel(text) };
  let fields: Record<string, unknown>;
  try {
    fields = JSON.parse(text.trimEnd().split('\n', 1)[0]!);
  } catch {
    return nothing;
  }
  const message = fields.msg ?? fields.message ?? fields.event;
  return {
    level: levelOf(fields.level ?? fields.severity ?? fields.lvl ?? fields['log.level']),
    message: typeof message === 'string' ? message.slice(0, maxMessageLength) : null,
    loggedAt: timeOf(fields.time ?? fields.ts ?? fields.timestamp ?? fields['@timestamp']),
  };
}

function logfmtLevel(text: string): LogLevel | null {
  const named = /(?:^|\s)(?:level|lvl)="?([A-Za-z]{3,11})"?(?:\s|$)/.exec(text)?.[1];
  return named === undefined ? null : levelOf(named);
}

/** pino and bunyan count: 10 is trace, 60 fatal. */
function levelOf(value: unknown): LogLevel | null {
  if (typeof value === 'string') return Object.hasOwn(names, value.toLowerCase()) ? names[value.toLowerCase()]! : null;
  if (typeof value !== 'number' || value < 10 || value >= 70) return null;
  return logLevels[Math.floor(value / 10) - 1] ?? null;
}

const year2000 = 946_684_800_000;
const year2200 = 7_258_118_400_000;

/** Text, or a number of seconds or milliseconds. */
function timeOf(value: unknown): number | null {
  const ms = typeof value === 'number' ? (value < year2000 / 10 ? value * 1000 : value) : Date.parse(String(value));
  return ms >= year2000 && ms < year2200 ? Math.floor(ms) : null;
}

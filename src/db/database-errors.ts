// Recognises database errors, on both databases alike.

function field(error: unknown, name: 'code' | 'message' | 'errcode'): unknown {
  return typeof error === 'object' && error !== null && name in error
    ? (error as Record<string, unknown>)[name]
    : undefined;
}

const sqliteUnique = new Set([1555, 2067]); // primary key, unique
const sqliteUnavailable = new Set([5, 10, 13, 14]); // busy, I/O error, disk full, cannot open

/** Another process holds the lock of a SQLite database. */
export function isLocked(error: unknown): boolean {
  const errcode = field(error, 'errcode');
  return typeof errcode === 'number' && (errcode & 0xff) === 5;
}

/** A primary key or a unique index refused the statement. */
export function isUniqueViolation(error: unknown): boolean {
  if (field(error, 'code') === '23505') return true;
  const errcode = field(error, 'errcode');
  return typeof errcode === 'number' && sqliteUnique.has(errcode);
}

const sqliteForeignKey = 787;

/** What the row belongs to is not there, or not any more. */
export const isForeignKeyViolation = (error: unknown): boolean =>
  field(error, 'code') === '23503' || field(error, 'errcode') === sqliteForeignKey;

/** The server takes no writes: a standby, or a primary that became one. */
const readOnly = '25006';
/** What the disk of the server has no room for (PostgreSQL); of this machine (SQLite). */
const diskFull = '53100';
const sqliteFull = 13;
const connectionCodes =
  /^(08...|57P0[123]|53100|53300|25P03|25006|57014|ECONNREFUSED|ECONNRESET|ENOTFOUND|EPIPE|ETIMEDOUT|EAI_AGAIN|ENOENT)$/;
const connectionMessages =
  /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|rolled back by SQLite/;

/** The database could not be reached or could not write; the same request may succeed later. */
export function isUnavailable(error: unknown): boolean {
  const errcode = field(error, 'errcode');
  if (typeof errcode === 'number') return sqliteUnavailable.has(errcode & 0xff);
  const code = field(error, 'code');
  if (typeof code === 'string' && connectionCodes.test(code)) return true;
  const message = field(error, 'message');
  return typeof message === 'string' && connectionMessages.test(message);
}

/** The server that refused the statement takes no writes. */
export const isReadOnly = (error: unknown): boolean => field(error, 'code') === readOnly;

/** Why a database is not available, in words that give away neither addresses nor names. */
export function unavailableReason(error: unknown): string {
  if (isReadOnly(error)) return 'it takes no writes';
  if (isLocked(error)) return 'another process has locked it';
  const errcode = field(error, 'errcode');
  const code = field(error, 'code');
  if ((typeof errcode === 'number' && (errcode & 0xff) === sqliteFull) || code === diskFull) return 'its disk is full';
  if (typeof errcode === 'number') return `SQLite error ${errcode}`;
  if (code === 'ECONNREFUSED' || code === 'ENOENT') return 'it refuses connections';
  const message = field(error, 'message');
  const isLate = typeof message === 'string' && /timeout/.test(message);
  if (code === 'ETIMEDOUT' || isLate) return 'no answer';
  return typeof code === 'string' ? `error ${code}` : 'the connection was lost';
}

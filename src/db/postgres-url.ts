// The database URL: as PostgreSQL's own clients take it, with one or several addresses, and with the limits of statements
// and connections. The driver knows neither several addresses nor these limits, so they are taken out here.
import { InvalidSetting } from '../lib/setting-parsers.ts';

export interface PostgresUrl {
  /** One for each address, with all else the same. */
  servers: [string, ...string[]];
  /** A PgBouncer in transaction mode: two statements of a connection may run in two sessions of the server. */
  pooled: boolean;
  /** After this the server ends a statement. */
  statementTimeoutMs: number;
  /** Until a connection is ready to use. */
  connectTimeoutMs: number;
}

const form = /^(postgres(?:ql)?:\/\/)([^/?#@]*@)?([^/?#]*)(\/[^?#]*)?(?:\?([^#]*))?$/;
const sessionAttributes = ['any', 'read-write', 'primary'];

export function readPostgresUrl(text: string): PostgresUrl {
  const [, scheme, user = '', hosts = '', path = '', query = ''] = form.exec(text) ?? [];
  if (scheme === undefined)
    throw new InvalidSetting('must be an address that begins with postgres:// or postgresql://');
  const parameters = new URLSearchParams(query);
  const take = (name: string) => {
    const value = parameters.get(name);
    parameters.delete(name);
    return value;
  };
  const wholeOf = (name: string, otherwise: number) => {
    const value = take(name);
    if (value === null) return otherwise;
    if (!/^[1-9]\d{0,6}$/.test(value)) throw new InvalidSetting(`has a ${name} that is not a whole number above 0`);
    return Number(value);
  };
  const pooled = take('pgbouncer') === 'true';
  const statementTimeoutMs = wholeOf('statement_timeout', 15_000);
  const connectTimeoutMs = wholeOf('connect_timeout', 5) * 1000;
  const attributes = take('target_session_attrs');
  if (attributes !== null && !sessionAttributes.includes(attributes))
    throw new InvalidSetting(
      `has a target_session_attrs other than ${sessionAttributes.join(', ')}: Sluice has to write`,
    );
  const rest = parameters.size === 0 ? '' : `?${parameters}`;
  const servers = hosts.split(',').map((host) => `${scheme}${user}${host}${path}${rest}`);
  if (!servers.every((server) => URL.canParse(server.replace('@/', '@host/'))))
    throw new InvalidSetting('is not an address');
  return { servers: servers as [string, ...string[]], pooled, statementTimeoutMs, connectTimeoutMs };
}

export const isPooled = (url: string): boolean => readPostgresUrl(url).pooled;

/** The setting, checked. */
export function postgresUrl(value: string): string | null {
  if (value === '') return null;
  readPostgresUrl(value);
  return value;
}

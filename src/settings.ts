// Every setting, its default and its check, once.
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { quotaSettings } from './accounts/quota-settings.ts';
import { postgresUrl } from './db/postgres-url.ts';
import { engineSettings } from './engines/engine-settings.ts';
import {
  bearerToken,
  choice,
  cidrs,
  days,
  headerName,
  hostName,
  hostNames,
  httpsRedirect,
  invalid,
  optional,
  port,
  secretKey,
  text,
  url,
  wholeNumber,
} from './lib/setting-parsers.ts';
import { logsSettings } from './logs/log-settings.ts';

export const roles = ['api', 'catalogue', 'router', 'worker'] as const;
export type Role = (typeof roles)[number];

interface Setting<T> {
  default: string;
  about: string;
  parse(text: string): T;
}

/** `haproxy`: the program, where one is named. */
function dataPlane(value: string): { setting: 'auto' | 'builtin' | 'haproxy'; haproxy: string | null } {
  if (value === 'auto' || value === 'builtin') return { setting: value, haproxy: null };
  const [, , program] = /^haproxy(:(.+))?$/.exec(value) ?? invalid('must be auto, builtin, haproxy or haproxy:PATH');
  return { setting: 'haproxy', haproxy: program ?? 'haproxy' };
}

function loginFiles(value: string): { account: string | null; path: string }[] {
  const items = value.split(',').filter((item) => item !== '');
  return items.map((item) => {
    const [, account = null, path = ''] = /^(?:(acc_[0-9a-z]{26})=)?(.*)$/s.exec(item.trim()) ?? [];
    if (/^acc_[^/]*=/.test(path) || path === '') invalid(`"${item}" must be account=path or a path`);
    return { account, path: resolve(path) };
  });
}

function roleList(value: string): Role[] {
  return value.split(',').map((item) => choice(roles)(item.trim()));
}

export const settings = {
  SLUICE_HOST: {
    default: '127.0.0.1',
    about: 'Address to listen on. `0.0.0.0`: every IPv4 address of the machine.',
    parse: text,
  },
  SLUICE_PORT: {
    default: '8080',
    about: 'Port of the API, the console, the docs, the catalogue and the metrics.',
    parse: port,
  },
  SLUICE_CONNECTIONS: {
    default: '10000',
    about: 'Maximum number of open connections to `SLUICE_PORT`. Further ones are closed at once.',
    parse: wholeNumber(1, 1_000_000),
  },
  SLUICE_CONNECTIONS_PER_ADDRESS: {
    default: '2000',
    about:
      'Maximum for one client: an IPv4 address or an IPv6 /64. Does not apply to `SLUICE_TRUSTED_PROXIES`. `0`: no limit per client.',
    parse: wholeNumber(0, 1_000_000),
  },
  SLUICE_STALL_TIMEOUT_S: {
    default: '30',
    about: 'Disconnects a client that reads nothing of its response for this many seconds.',
    parse: wholeNumber(1, 3600),
  },
  SLUICE_ROUTER_PORT: { default: '8000', about: 'HTTP port for visitors of deployed applications.', parse: port },
  SLUICE_ROUTER_TLS_PORT: { default: '8443', about: 'HTTPS port for visitors of deployed applications.', parse: port },
  SLUICE_ROUTER_DOMAIN: {
    default: 'localhost',
    about: 'Environments are served at `<project-slug>-<environment>.<domain>`.',
    parse: hostName,
  },
  SLUICE_BASE_URL: {
    default: '',
    about: 'Public URL of the catalogue. Empty: derived from host and port.',
    parse: url(['http:', 'https:']),
  },
  SLUICE_API_URL: {
    default: '',
    about: 'Public URL of the API, without `/v1`. Empty: `SLUICE_BASE_URL`, or derived from host and port.',
    parse: url(['http:', 'https:']),
  },
  SLUICE_DATA_DIR: {
    default: './data',
    about: 'Directory for the database, keys and certificates.',
    parse: (v: string) => resolve(v),
  },
  SLUICE_DATABASE_URL: {
    default: '',
    about: '`postgres://…`. Empty: SQLite in the data directory, for a single process.',
    parse: postgresUrl,
  },
  SLUICE_DATABASE_DIRECT_URL: {
    default: '',
    about:
      'URL of PostgreSQL itself if `SLUICE_DATABASE_URL` is a PgBouncer in transaction mode. Used for migrations and notifications.',
    parse: postgresUrl,
  },
  ...engineSettings,
  SLUICE_REGISTRY_CONFIG: {
    default: '',
    about:
      'Docker `config.json` files with registry logins, comma-separated `account=path`. A path without an account is for the first account.',
    parse: loginFiles,
  },
  SLUICE_REGISTRY_ALLOW: {
    default: '',
    about:
      'Registries at loopback or private addresses that images may name, comma-separated, such as `registry.internal:5000`. With one account: any.',
    parse: (v: string) => v.split(',').flatMap((item) => item.trim() || []),
  },
  SLUICE_ADMIN_TOKEN: {
    default: '',
    about: 'The admin token. Empty: the first start creates one in `<data>/admin-token`.',
    parse: bearerToken,
  },
  SLUICE_METRICS_TOKEN: {
    default: '',
    about:
      'Bearer token that `/metrics` requires, at least 20 characters. Empty: `/metrics` answers requests from this machine only.',
    parse: bearerToken,
  },
  SLUICE_METRICS_OPEN: {
    default: 'off',
    about:
      '`on`: without a token, `/metrics` answers anyone who reaches the service directly, not through a trusted proxy.',
    parse: choice(['on', 'off']),
  },
  SLUICE_SECRET_KEY: {
    default: '',
    about: '32-byte key that encrypts secrets at rest. Empty: the first start creates one in `<data>/secret.key`.',
    parse: secretKey,
  },
  SLUICE_PROJECTS_PER_ACCOUNT: {
    default: '1000',
    about: 'Maximum number of projects per account. `0`: no limit.',
    parse: wholeNumber(0, 1_000_000),
  },
  ...quotaSettings,
  SLUICE_CATALOGUE_DIR: {
    default: '',
    about: 'Directory of the published catalogue. Empty: `<data>/catalogue`.',
    parse: optional,
  },
  SLUICE_WEBHOOK_ALLOW_CIDRS: {
    default: '',
    about:
      'Private address ranges that webhooks may reach, comma-separated. Response bodies from there are not stored.',
    parse: cidrs,
  },
  SLUICE_TRUSTED_PROXIES: {
    default: '',
    about: 'Address ranges of proxies in front of Sluice, comma-separated. Their `X-Forwarded-For` is trusted.',
    parse: cidrs,
  },
  SLUICE_HOST_KEPT_DAYS: {
    default: '30',
    about:
      'Days for which the address of a deleted environment is kept for its account. `0`: any account may have it at once.',
    parse: wholeNumber(0, 3650),
  },
  SLUICE_EVENT_RETENTION_DAYS: {
    default: '90',
    about: 'Days to keep events, deliveries, delivery attempts and resolved alerts.',
    parse: days,
  },
  SLUICE_DEPLOYMENT_RETENTION_DAYS: {
    default: '90',
    about:
      'Days to keep deployments with their timelines and revisions. What is live, can be rolled back to, or among the last 20 stays.',
    parse: days,
  },
  SLUICE_DEPLOYMENT_RETENTION_COUNT: {
    default: '1000',
    about:
      'Deployments of one environment to keep at most. Older ones are deleted even if they are younger than the days above.',
    parse: wholeNumber(20, 1_000_000),
  },
  SLUICE_AUDIT_RETENTION_DAYS: {
    default: '365',
    about: 'Days to keep rows of the audit log, and tokens after they have expired or were revoked.',
    parse: days,
  },
  SLUICE_SIGNATURE_HEADER: {
    default: 'X-Service-Signature',
    about: 'Name of the header with the signature of a webhook delivery.',
    parse: headerName,
  },
  SLUICE_ACME_DIRECTORY: {
    default: '',
    about: 'Directory URL of an ACME certificate authority. Empty: a built-in local CA.',
    parse: url(['https:', 'http:']),
  },
  SLUICE_LOCAL_DOMAINS: {
    default: '',
    about:
      'Domains of your own network (`corp.lan`), comma-separated. The local CA issues certificates for names below them without proof.',
    parse: hostNames,
  },
  SLUICE_HTTPS_REDIRECT: {
    default: 'auto',
    about:
      'Redirects domains with a certificate to HTTPS: `on`, `off`, a public HTTPS port, or `auto` (on if `SLUICE_ACME_DIRECTORY` is set).',
    parse: httpsRedirect,
  },
  SLUICE_DATA_PLANE: {
    default: 'auto',
    about:
      'What routes requests: `builtin`, `haproxy`, `haproxy:/path`, or `auto` (HAProxy 2.6 or newer if it is installed).',
    parse: dataPlane,
  },
  SLUICE_ROUTER_CONNECTIONS: {
    default: '20000',
    about:
      'Maximum number of open connections to the router, shared evenly by its workers. Further ones are closed at once.',
    parse: wholeNumber(1, 1_000_000),
  },
  SLUICE_ROUTER_CONNECTIONS_PER_ADDRESS: {
    default: '2000',
    about:
      'Maximum for one client: an IPv4 address or an IPv6 /64. Does not apply to `SLUICE_TRUSTED_PROXIES`. `0`: no limit per client.',
    parse: wholeNumber(0, 1_000_000),
  },
  SLUICE_ROUTER_LEASE_S: {
    default: '60',
    about: 'Seconds without contact to the database after which instances are stopped without waiting for this router.',
    parse: wholeNumber(1, 3600),
  },
  SLUICE_ACME_EMAIL: { default: '', about: 'Contact address for the ACME account.', parse: optional },
  SLUICE_ACME_CA_FILE: {
    default: '',
    about: 'PEM file with an additional root certificate to trust when connecting to a private ACME authority.',
    parse: (value: string) => (value === '' ? null : resolve(value)),
  },
  SLUICE_SAMPLE: {
    default: 'on',
    about: '`off`: do not fill an empty catalogue with sample streams.',
    parse: (value: string) => choice(['on', 'off'])(value) === 'on',
  },
  SLUICE_ROLES: {
    default: 'api,catalogue,router,worker',
    about: 'What this process does, comma-separated.',
    parse: roleList,
  },
  SLUICE_ROUTER_WORKERS: {
    default: 'auto',
    about: 'Number of router processes. `auto`: one per CPU core.',
    parse: (value: string) => (value === 'auto' ? availableParallelism() : wholeNumber(1, 256)(value)),
  },
  SLUICE_IMAGES_KEPT_HOURS: {
    default: '1',
    about:
      'Docker: hours after which an image that Sluice pulled and nothing needs is removed. On a full disk, at once.',
    parse: wholeNumber(0, 8760),
  },
  SLUICE_WATCHDOG_S: {
    default: '30',
    about: 'Seconds after which a process of the service that hangs is replaced. `0`: never.',
    parse: wholeNumber(0, 86_400),
  },
  SLUICE_DRAIN_S: {
    default: '300',
    about: 'Seconds that open requests, WebSockets and streams get to finish when a process is replaced or stopped.',
    parse: wholeNumber(1, 86_400),
  },
  ...logsSettings,
  SLUICE_LOG_LEVEL: {
    default: 'info',
    about: '`debug`, `info`, `warn`, `error` or `silent`.',
    parse: choice(['debug', 'info', 'warn', 'error', 'silent']),
  },
  SLUICE_LOG_FORMAT: {
    default: 'auto',
    about: '`json`, `pretty`, or `auto` (pretty on a terminal).',
    parse: choice(['auto', 'json', 'pretty']),
  },
} satisfies Record<string, Setting<unknown>>;

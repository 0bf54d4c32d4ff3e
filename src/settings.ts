// Every setting, its default and its check, once.
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
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
  SLUICE_HOST: { default: '127.0.0.1', about: 'Address the service listens on.', parse: text },
  SLUICE_PORT: { default: '8080', about: 'Port of the catalogue, the API, docs, console and metrics.', parse: port },
  SLUICE_CONNECTIONS: {
    default: '10000',
    about: 'Connections to that port at a time; more are closed at once.',
    parse: wholeNumber(1, 1_000_000),
  },
  SLUICE_CONNECTIONS_PER_ADDRESS: {
    default: '2000',
    about:
      'The same for one address, or one /64 of IPv6; `SLUICE_TRUSTED_PROXIES` may have any number. `0`: no limit but ' +
      'the one for all.',
    parse: wholeNumber(0, 1_000_000),
  },
  SLUICE_STALL_TIMEOUT_S: {
    default: '30',
    about: 'A client of that port that takes nothing of its response for this many seconds is disconnected.',
    parse: wholeNumber(1, 3600),
  },
  SLUICE_ROUTER_PORT: { default: '8000', about: 'Port for traffic to deployed revisions.', parse: port },
  SLUICE_ROUTER_TLS_PORT: { default: '8443', about: 'The same with TLS.', parse: port },
  SLUICE_ROUTER_DOMAIN: {
    default: 'localhost',
    about: 'An environment answers at `<project-slug>-<environment>.<domain>`.',
    parse: hostName,
  },
  SLUICE_BASE_URL: {
    default: '',
    about:
      'Public address of the catalogue, as the start-up lines and the reference show it. Empty: derived from host and port.',
    parse: url(['http:', 'https:']),
  },
  SLUICE_API_URL: {
    default: '',
    about:
      'Public address of the API, without `/v1`; `error.docs` and `Location` are built on it. Empty: `SLUICE_BASE_URL`, ' +
      'or derived from host and port.',
    parse: url(['http:', 'https:']),
  },
  SLUICE_DATA_DIR: { default: './data', about: 'Database, keys and certificates.', parse: (v: string) => resolve(v) },
  SLUICE_DATABASE_URL: {
    default: '',
    about: '`postgres://…`; empty: SQLite in the data directory, for one process.',
    parse: postgresUrl,
  },
  SLUICE_DATABASE_DIRECT_URL: {
    default: '',
    about:
      'PostgreSQL itself, where `SLUICE_DATABASE_URL` leads to a PgBouncer: used to migrate and to notify other processes.',
    parse: postgresUrl,
  },
  ...engineSettings,
  SLUICE_REGISTRY_CONFIG: {
    default: '',
    about:
      'Files with logins of registries, as `docker login` writes them (`~/.docker/config.json`), comma-separated ' +
      '`account=path`, read for every pull of that account. A path alone is for the first account, that of the operator.',
    parse: loginFiles,
  },
  SLUICE_ADMIN_TOKEN: {
    default: '',
    about: 'The admin token. Empty: the first start makes one and keeps it in `<data>/admin-token`.',
    parse: bearerToken,
  },
  SLUICE_METRICS_TOKEN: {
    default: '',
    about:
      'What `/metrics` wants as `Authorization: Bearer`, 20 characters or more. Empty: it is open, but not to requests that ' +
      'come through one of `SLUICE_TRUSTED_PROXIES`.',
    parse: bearerToken,
  },
  SLUICE_SECRET_KEY: {
    default: '',
    about: '32 bytes that encrypt secrets at rest. Empty: made on first start in `<data>/secret.key`.',
    parse: secretKey,
  },
  SLUICE_PROJECTS_PER_ACCOUNT: {
    default: '1000',
    about: 'Projects that an account may have; 422 `quota_exceeded` beyond. `0`: any number.',
    parse: wholeNumber(0, 1_000_000),
  },
  SLUICE_CATALOGUE_DIR: { default: '', about: 'The published site. Empty: `<data>/catalogue`.', parse: optional },
  SLUICE_WEBHOOK_ALLOW_CIDRS: {
    default: '',
    about:
      'Private address ranges that webhooks may reach all the same, comma-separated. What answers there is not shown.',
    parse: cidrs,
  },
  SLUICE_TRUSTED_PROXIES: {
    default: '',
    about: 'Addresses of proxies in front of the service, comma-separated ranges: their `X-Forwarded-For` is believed.',
    parse: cidrs,
  },
  SLUICE_EVENT_RETENTION_DAYS: {
    default: '90',
    about: 'How long events, deliveries with their attempts, and resolved alerts are kept.',
    parse: days,
  },
  SLUICE_SIGNATURE_HEADER: {
    default: 'X-Service-Signature',
    about: 'Header that carries the signature of a webhook.',
    parse: headerName,
  },
  SLUICE_ACME_DIRECTORY: {
    default: '',
    about: 'Directory of the certificate authority. Empty: a built-in local CA.',
    parse: url(['https:', 'http:']),
  },
  SLUICE_LOCAL_DOMAINS: {
    default: '',
    about:
      'With the local CA: domains of your own network, comma-separated (`corp.lan`). As below `localhost`, `test`, ' +
      '`example` and `internal`, hostnames below them need no proof, and the local CA signs them.',
    parse: hostNames,
  },
  SLUICE_HTTPS_REDIRECT: {
    default: 'auto',
    about:
      'Visitors of a domain with a certificate who come without TLS are sent to `https://`. `on`, `off`, `auto`: on where ' +
      '`SLUICE_ACME_DIRECTORY` is set; or `on` with the port that visitors reach TLS at, if it is not the router’s own.',
    parse: httpsRedirect,
  },
  SLUICE_DATA_PLANE: {
    default: 'auto',
    about:
      'What carries visitors’ requests: `builtin`, or `haproxy` (2.6 or newer), perhaps with its path: ' +
      '`haproxy:/usr/sbin/haproxy`. `auto`: HAProxy where it is installed, else the built-in router; a start-up line says ' +
      'which and why. See docs/traffic.md.',
    parse: dataPlane,
  },
  SLUICE_ROUTER_CONNECTIONS: {
    default: '20000',
    about: 'Visitors’ connections at a time; more are closed at once. Router workers share them evenly.',
    parse: wholeNumber(1, 1_000_000),
  },
  SLUICE_ROUTER_CONNECTIONS_PER_ADDRESS: {
    default: '2000',
    about:
      'The same for one address, or one /64 of IPv6; `SLUICE_TRUSTED_PROXIES` may have any number. `0`: no limit but ' +
      'the one for all.',
    parse: wholeNumber(0, 1_000_000),
  },
  SLUICE_ROUTER_LEASE_S: {
    default: '60',
    about:
      'A router that has not reached the database for this many seconds holds up nothing any more: instances that it may ' +
      'still send requests to are stopped.',
    parse: wholeNumber(1, 3600),
  },
  SLUICE_ACME_EMAIL: { default: '', about: 'Contact given to it.', parse: optional },
  SLUICE_ACME_CA_FILE: {
    default: '',
    about: 'PEM file with a root that the directory’s own address is trusted by, for a private certificate authority.',
    parse: (value: string) => (value === '' ? null : resolve(value)),
  },
  SLUICE_SAMPLE: {
    default: 'on',
    about: '`off`: an empty catalogue stays empty instead of getting the sample streams.',
    parse: (value: string) => choice(['on', 'off'])(value) === 'on',
  },
  SLUICE_ROLES: {
    default: 'api,catalogue,router,worker',
    about: 'What this process does, comma-separated.',
    parse: roleList,
  },
  SLUICE_ROUTER_WORKERS: {
    default: 'auto',
    about: 'Processes that carry visitors’ requests. `auto`: one per processor core.',
    parse: (value: string) => (value === 'auto' ? availableParallelism() : wholeNumber(1, 256)(value)),
  },
  SLUICE_DRAIN_S: {
    default: '300',
    about:
      'Seconds that downloads, uploads, WebSockets and HTTP/2 streams may go on in a process that is being replaced or stopped.',
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
    about: '`json`, `pretty`, or `auto`: pretty on a terminal.',
    parse: choice(['auto', 'json', 'pretty']),
  },
} satisfies Record<string, Setting<unknown>>;

// Every setting, its default and its check, once. The environment becomes a plain object here; every mistake is told in
// one line of its own.
import { join, resolve } from 'node:path';
import { readPostgresUrl } from './db/postgres/url.ts';
import { parseRegions, type RegionSetting } from './engines/region-setting.ts';
import type { Range } from './lib/address.ts';
import {
  choice,
  cidrs,
  days,
  headerName,
  hostName,
  Mistake,
  optional,
  port,
  secretKey,
  text,
  url,
  wholeNumber,
  wrong,
} from './lib/setting-forms.ts';
import { StartError } from './lib/start-error.ts';

export const roles = ['api', 'catalogue', 'router', 'worker'] as const;
type Role = (typeof roles)[number];

export interface Config {
  host: string;
  port: number;
  routerPort: number;
  routerTlsPort: number;
  routerDomain: string;
  /** null: derived from host and port once the port is known. */
  baseUrl: string | null;
  apiUrl: string | null;
  dataDir: string;
  databaseUrl: string | null;
  /** For what needs a session of its own, where databaseUrl leads to a pooler. */
  databaseDirectUrl: string | null;
  regions: RegionSetting[];
  /** Path of a docker config.json with the logins of registries. */
  registryConfig: string | null;
  pullTimeoutS: number;
  adminToken: string | null;
  secretKey: Buffer | null;
  catalogueDir: string;
  sample: boolean;
  webhookAllowCidrs: Range[];
  trustedProxies: Range[];
  eventRetentionDays: number;
  signatureHeader: string;
  acmeDirectory: string | null;
  acmeEmail: string | null;
  /** Path of a file with roots to trust for the directory, besides those everybody does. */
  acmeCaFile: string | null;
  /** Visitors without TLS are sent to the address with it, at this port (null: the router's own); null: they are not. */
  httpsRedirect: { port: number | null } | null;
  roles: Role[];
  /** FFMPEG and PATH: where to look for the encoder of the sample streams. */
  ffmpeg: string | null;
  searchPath: string | null;
  logLevel: string;
  logFormat: 'json' | 'pretty';
}

interface Setting<T> {
  default: string;
  about: string;
  parse(text: string): T;
}

function databaseUrl(value: string): string | null {
  if (value === '') return null;
  try {
    readPostgresUrl(value);
  } catch (error) {
    wrong((error as Error).message);
  }
  return value;
}

function adminToken(value: string): string | null {
  if (value === '') return null;
  return /^[!-~]{20,200}$/.test(value) ? value : wrong('must be 20 to 200 printable characters without spaces');
}

function httpsRedirect(value: string): 'auto' | 'on' | 'off' | number {
  if (value === 'auto' || value === 'on' || value === 'off') return value;
  const number = Number(value);
  const isPort = /^\d{1,5}$/.test(value) && number >= 1 && number <= 65_535;
  return isPort ? number : wrong('must be auto, on, off or a port from 1 to 65535');
}

function redirectOf(setting: 'auto' | 'on' | 'off' | number, acmeDirectory: string | null): Config['httpsRedirect'] {
  if (setting === 'off' || (setting === 'auto' && acmeDirectory === null)) return null;
  return { port: typeof setting === 'number' ? setting : null };
}

function roleList(value: string): Role[] {
  return value.split(',').map((item) => choice(roles)(item.trim()));
}

export const settings = {
  SLUICE_HOST: { default: '127.0.0.1', about: 'Address the service listens on.', parse: text },
  SLUICE_PORT: { default: '8080', about: 'Port of the catalogue, the API, docs, console and metrics.', parse: port },
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
    parse: databaseUrl,
  },
  SLUICE_DATABASE_DIRECT_URL: {
    default: '',
    about:
      'PostgreSQL itself, where `SLUICE_DATABASE_URL` leads to a PgBouncer: used to migrate and to notify other processes.',
    parse: databaseUrl,
  },
  SLUICE_REGIONS: {
    default: 'local=auto',
    about:
      'Comma-separated `name=engine`; engines `auto`, `standin:`, `docker:[socket or tcp address]`, ' +
      '`kubernetes:[context]`. `auto` is Docker where its socket answers at the first start, the stand-in otherwise; later ' +
      'starts go on with the same engine. See docs/engines.md.',
    parse: parseRegions,
  },
  SLUICE_REGISTRY_CONFIG: {
    default: '',
    about:
      'File with logins of registries, as `docker login` writes it (`~/.docker/config.json`), read for every pull.',
    parse: (value: string) => (value === '' ? null : resolve(value)),
  },
  SLUICE_PULL_TIMEOUT_S: {
    default: '1800',
    about:
      'Seconds that pulling an image may take in all, from 1 to 86400, with the attempts to reach a registry that is away. ' +
      'A deployment whose image is not there by then fails.',
    parse: wholeNumber(1, 86_400),
  },
  SLUICE_ADMIN_TOKEN: {
    default: '',
    about: 'The admin token. Empty: the first start makes one and keeps it in `<data>/admin-token`.',
    parse: adminToken,
  },
  SLUICE_SECRET_KEY: {
    default: '',
    about: '32 bytes that encrypt secrets at rest. Empty: made on first start in `<data>/secret.key`.',
    parse: secretKey,
  },
  SLUICE_CATALOGUE_DIR: { default: '', about: 'The published site. Empty: `<data>/catalogue`.', parse: optional },
  SLUICE_WEBHOOK_ALLOW_CIDRS: {
    default: '',
    about: 'Private address ranges that webhooks may reach all the same, comma-separated.',
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
  SLUICE_HTTPS_REDIRECT: {
    default: 'auto',
    about:
      'Visitors of a domain with a certificate who come without TLS are sent to `https://`. `on`, `off`, `auto`: on where ' +
      '`SLUICE_ACME_DIRECTORY` is set; or `on` with the port that visitors reach TLS at, if it is not the router’s own.',
    parse: httpsRedirect,
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

type SettingName = keyof typeof settings;

/** Read by the command line, not by the service; no mistake if they are set where it runs. */
const foreign = new Set(['SLUICE_TOKEN', 'SLUICE_PROJECT']);

export function unknownSettings(env: Record<string, string | undefined>): string[] {
  return Object.keys(env).filter((name) => name.startsWith('SLUICE_') && !(name in settings) && !foreign.has(name));
}

export function readConfig(env: Record<string, string | undefined>, isTerminal: boolean): Config {
  const mistakes: string[] = [];
  const read = <N extends SettingName>(name: N): ReturnType<(typeof settings)[N]['parse']> => {
    const setting = settings[name];
    // An empty string in the environment means the same as none: the default.
    const value = env[name] || setting.default;
    try {
      return setting.parse(value) as ReturnType<(typeof settings)[N]['parse']>;
    } catch (error) {
      if (!(error instanceof Mistake)) throw error;
      mistakes.push(`${name} ${error.message}`);
      return undefined as never;
    }
  };
  const dataDir = read('SLUICE_DATA_DIR');
  const format = read('SLUICE_LOG_FORMAT');
  const acmeDirectory = read('SLUICE_ACME_DIRECTORY');
  const config: Config = {
    host: read('SLUICE_HOST'),
    port: read('SLUICE_PORT'),
    routerPort: read('SLUICE_ROUTER_PORT'),
    routerTlsPort: read('SLUICE_ROUTER_TLS_PORT'),
    routerDomain: read('SLUICE_ROUTER_DOMAIN'),
    baseUrl: read('SLUICE_BASE_URL'),
    apiUrl: read('SLUICE_API_URL'),
    dataDir,
    databaseUrl: read('SLUICE_DATABASE_URL'),
    databaseDirectUrl: read('SLUICE_DATABASE_DIRECT_URL'),
    regions: read('SLUICE_REGIONS'),
    registryConfig: read('SLUICE_REGISTRY_CONFIG'),
    pullTimeoutS: read('SLUICE_PULL_TIMEOUT_S'),
    adminToken: read('SLUICE_ADMIN_TOKEN'),
    secretKey: read('SLUICE_SECRET_KEY'),
    catalogueDir: read('SLUICE_CATALOGUE_DIR') ?? join(dataDir, 'catalogue'),
    sample: read('SLUICE_SAMPLE'),
    webhookAllowCidrs: read('SLUICE_WEBHOOK_ALLOW_CIDRS'),
    trustedProxies: read('SLUICE_TRUSTED_PROXIES'),
    eventRetentionDays: read('SLUICE_EVENT_RETENTION_DAYS'),
    signatureHeader: read('SLUICE_SIGNATURE_HEADER'),
    acmeDirectory,
    acmeEmail: read('SLUICE_ACME_EMAIL'),
    acmeCaFile: read('SLUICE_ACME_CA_FILE'),
    httpsRedirect: redirectOf(read('SLUICE_HTTPS_REDIRECT'), acmeDirectory),
    roles: read('SLUICE_ROLES'),
    ffmpeg: env.FFMPEG ?? null,
    searchPath: env.PATH ?? null,
    logLevel: read('SLUICE_LOG_LEVEL'),
    logFormat: format === 'auto' ? (isTerminal ? 'pretty' : 'json') : format,
  };
  if (config.databaseDirectUrl !== null && config.databaseUrl === null)
    mistakes.push('SLUICE_DATABASE_DIRECT_URL has to come with SLUICE_DATABASE_URL');
  if (mistakes.length > 0) throw new StartError(...mistakes);
  return config;
}

/** The address people reach a listener at, from where it listens. */
export function addressOf(host: string, port: number): string {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

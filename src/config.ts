// The environment becomes a plain object here, once; every mistake in it is told in a line of its own.
import { join } from 'node:path';
import type { QuotaSetting } from './accounts/quota-settings.ts';
import type { SubnetPool } from './engines/docker/subnets.ts';
import type { RegionSetting } from './engines/engine-settings.ts';
import { type KubernetesSettings, ownServer, usualKubeconfig } from './engines/kubernetes/kubernetes-settings.ts';
import type { Mirrors } from './engines/registry/registry-endpoints.ts';
import type { Range } from './lib/address.ts';
import { type S3Store, storeAt } from './lib/s3-address.ts';
import { InvalidSetting } from './lib/setting-parsers.ts';
import { StartError } from './lib/start-error.ts';
import { type Role, settings } from './settings.ts';

export interface Config {
  host: string;
  port: number;
  connections: number;
  connectionsPerAddress: number;
  stallTimeoutS: number;
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
  /** Files with logins of registries, each for one account; null: the first. */
  registryConfig: { account: string | null; path: string }[];
  registryAllow: string[];
  registryMirrors: Mirrors;
  kubernetes: KubernetesSettings;
  dockerNetworks: SubnetPool;
  /** How long one of several Docker hosts of a region may be away before what it runs is replaced. */
  dockerHostGraceS: number;
  /** What a container may write, where Docker can limit it. */
  dockerDiskMb: number;
  pullTimeoutS: number;
  instancePorts: { first: number; last: number };
  adminToken: string | null;
  metricsToken: string | null;
  metricsOpen: 'on' | 'off';
  secretKey: Buffer | null;
  /** 0: any number. */
  projectsPerAccount: number;
  quotas: QuotaSetting;
  catalogueDir: string;
  sample: boolean;
  webhookAllowCidrs: Range[];
  trustedProxies: Range[];
  eventRetentionDays: number;
  deploymentRetentionDays: number;
  deploymentRetentionCount: number;
  auditRetentionDays: number;
  hostKeptDays: number;
  signatureHeader: string;
  acmeDirectory: string | null;
  /** Names below these need no proof, with the local CA. */
  localDomains: string[];
  acmeEmail: string | null;
  /** Path of a file with roots to trust for the directory, besides those everybody does. */
  acmeCaFile: string | null;
  /** Visitors without TLS are sent to the address with it, at this port (null: the router's own); null: they are not. */
  httpsRedirect: { port: number | null } | null;
  /** The supervisor decides what `auto` means; until then, and without a supervisor, it means the built-in proxy. */
  dataPlane: 'auto' | 'builtin' | 'haproxy';
  /** The program of HAProxy, where that is the data plane; null: the built-in proxy. */
  haproxy: string | null;
  routerConnections: number;
  routerConnectionsPerAddress: number;
  routerLeaseS: number;
  roles: Role[];
  routerWorkers: number;
  /** For how long requests under way may go on in a process that is to end. */
  drainS: number;
  /** How long an image that nothing refers to stays on its engine. */
  imagesKeptHours: number;
  /** 0: a process that hangs is not replaced. */
  watchdogS: number;
  /** FFMPEG and PATH: where to look for the encoder of the sample streams. */
  ffmpeg: string | null;
  searchPath: string | null;
  /** Of what instances print, per environment. */
  logsMb: number;
  logsDays: number;
  /** null: in the data directory, or in PostgreSQL. */
  logsS3: S3Store | null;
  /** Where the same lines are sent; null: nowhere. */
  logsSyslog: { transport: 'udp' | 'tcp' | 'tls'; host: string; port: number } | null;
  logsOtlp: string | null;
  logsOtlpHeaders: Record<string, string>;
  logLevel: string;
  logFormat: 'json' | 'pretty';
}

function redirectOf(setting: 'auto' | 'on' | 'off' | number, acmeDirectory: string | null): Config['httpsRedirect'] {
  if (setting === 'off' || (setting === 'auto' && acmeDirectory === null)) return null;
  return { port: typeof setting === 'number' ? setting : null };
}

type SettingName = keyof typeof settings;

/** Read by the command line, or what the supervisor tells its children: no mistake if they are set. */
const foreign = new Set(['SLUICE_TOKEN', 'SLUICE_PROJECT', 'SLUICE_CONTROL', 'SLUICE_WORKER']);

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
      if (!(error instanceof InvalidSetting)) throw error;
      mistakes.push(`${name} ${error.message}`);
      return undefined as never;
    }
  };
  const dataDir = read('SLUICE_DATA_DIR');
  const format = read('SLUICE_LOG_FORMAT');
  const acmeDirectory = read('SLUICE_ACME_DIRECTORY');
  const dataPlane = read('SLUICE_DATA_PLANE');
  const namespace = read('SLUICE_KUBERNETES_NAMESPACE');
  const prefix = read('SLUICE_KUBERNETES_NAMESPACE_PREFIX');
  const logsS3 = read('SLUICE_LOGS_S3');
  const config: Config = {
    host: read('SLUICE_HOST'),
    port: read('SLUICE_PORT'),
    connections: read('SLUICE_CONNECTIONS'),
    connectionsPerAddress: read('SLUICE_CONNECTIONS_PER_ADDRESS'),
    stallTimeoutS: read('SLUICE_STALL_TIMEOUT_S'),
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
    registryAllow: read('SLUICE_REGISTRY_ALLOW'),
    registryMirrors: read('SLUICE_REGISTRY_MIRRORS'),
    kubernetes: {
      kubeconfig: read('SLUICE_KUBECONFIG') ?? usualKubeconfig(env.KUBECONFIG),
      ownServer: ownServer(env.KUBERNETES_SERVICE_HOST, env.KUBERNETES_SERVICE_PORT),
      allowExec: read('SLUICE_KUBERNETES_EXEC'),
      namespaces: namespace ? { kind: 'one', name: namespace } : { kind: 'per-project', prefix },
      routers: read('SLUICE_KUBERNETES_ROUTERS'),
    },
    dockerNetworks: read('SLUICE_DOCKER_NETWORKS'),
    dockerHostGraceS: read('SLUICE_DOCKER_HOST_GRACE_S'),
    dockerDiskMb: read('SLUICE_DOCKER_DISK_MB'),
    pullTimeoutS: read('SLUICE_PULL_TIMEOUT_S'),
    instancePorts: read('SLUICE_INSTANCE_PORTS'),
    adminToken: read('SLUICE_ADMIN_TOKEN'),
    metricsToken: read('SLUICE_METRICS_TOKEN'),
    metricsOpen: read('SLUICE_METRICS_OPEN'),
    secretKey: read('SLUICE_SECRET_KEY'),
    projectsPerAccount: read('SLUICE_PROJECTS_PER_ACCOUNT'),
    quotas: read('SLUICE_QUOTAS'),
    catalogueDir: read('SLUICE_CATALOGUE_DIR') ?? join(dataDir, 'catalogue'),
    sample: read('SLUICE_SAMPLE'),
    webhookAllowCidrs: read('SLUICE_WEBHOOK_ALLOW_CIDRS'),
    trustedProxies: read('SLUICE_TRUSTED_PROXIES'),
    eventRetentionDays: read('SLUICE_EVENT_RETENTION_DAYS'),
    deploymentRetentionDays: read('SLUICE_DEPLOYMENT_RETENTION_DAYS'),
    deploymentRetentionCount: read('SLUICE_DEPLOYMENT_RETENTION_COUNT'),
    auditRetentionDays: read('SLUICE_AUDIT_RETENTION_DAYS'),
    hostKeptDays: read('SLUICE_HOST_KEPT_DAYS'),
    signatureHeader: read('SLUICE_SIGNATURE_HEADER'),
    acmeDirectory,
    localDomains: read('SLUICE_LOCAL_DOMAINS'),
    acmeEmail: read('SLUICE_ACME_EMAIL'),
    acmeCaFile: read('SLUICE_ACME_CA_FILE'),
    httpsRedirect: redirectOf(read('SLUICE_HTTPS_REDIRECT'), acmeDirectory),
    dataPlane: dataPlane?.setting,
    haproxy: dataPlane?.haproxy,
    routerConnections: read('SLUICE_ROUTER_CONNECTIONS'),
    routerConnectionsPerAddress: read('SLUICE_ROUTER_CONNECTIONS_PER_ADDRESS'),
    routerLeaseS: read('SLUICE_ROUTER_LEASE_S'),
    roles: read('SLUICE_ROLES'),
    routerWorkers: read('SLUICE_ROUTER_WORKERS'),
    drainS: read('SLUICE_DRAIN_S'),
    watchdogS: read('SLUICE_WATCHDOG_S'),
    imagesKeptHours: read('SLUICE_IMAGES_KEPT_HOURS'),
    ffmpeg: env.FFMPEG ?? null,
    searchPath: env.PATH ?? null,
    logsMb: read('SLUICE_LOGS_MB'),
    logsDays: read('SLUICE_LOGS_DAYS'),
    logsS3: logsS3 && storeAt(logsS3, env),
    logsSyslog: read('SLUICE_LOGS_SYSLOG'),
    logsOtlp: read('SLUICE_LOGS_OTLP'),
    logsOtlpHeaders: read('SLUICE_LOGS_OTLP_HEADERS'),
    logLevel: read('SLUICE_LOG_LEVEL'),
    logFormat: format === 'auto' ? (isTerminal ? 'pretty' : 'json') : format,
  };
  if (config.databaseDirectUrl !== null && config.databaseUrl === null)
    mistakes.push('SLUICE_DATABASE_DIRECT_URL has to come with SLUICE_DATABASE_URL');
  if (config.haproxy !== null && (config.routerPort === 0 || config.routerTlsPort === 0))
    mistakes.push('SLUICE_DATA_PLANE haproxy needs a SLUICE_ROUTER_PORT and a SLUICE_ROUTER_TLS_PORT other than 0');
  if (logsS3 && !config.logsS3) mistakes.push('SLUICE_LOGS_S3 needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
  if (mistakes.length > 0) throw new StartError(...mistakes);
  return config;
}

/** The address people reach a listener at, from where it listens. */
export function addressOf(host: string, port: number): string {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

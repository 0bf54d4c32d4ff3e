// How the API of a cluster is reached: read from a kubeconfig file, or from the service account of the pod that this
// service runs in. Whatever would make the connection less safe than it looks is refused, and so are programs to run,
// unless the operator allows them.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, resolve } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';

export interface ClusterAccess {
  /** `https://host:port`, perhaps with a path. */
  server: string;
  /** Certificates that the server's is checked by, as PEM; null: those of the system. */
  ca: string | null;
  /** The name in the server's certificate, where it is another than its host. */
  serverName: string | null;
  client: { cert: string; key: string } | null;
  /** null: the client certificate is enough. */
  token: TokenSource | null;
  /** The namespace that this account is at home in. */
  namespace: string | null;
}

/** Gives the token as it is now; `anew`: the last one was refused. */
type TokenSource = (anew: boolean) => Promise<string>;

/** The access is described wrongly, or in a form that is not accepted. */
export class AccessError extends Error {}

interface Named<T> {
  name?: string;
  cluster?: T;
  user?: T;
  context?: T;
}

type Entry = Record<string, unknown>;

interface Kubeconfig {
  'current-context'?: string;
  contexts?: Named<Entry>[];
  clusters?: Named<Entry>[];
  users?: Named<Entry>[];
}

interface KubeconfigOptions {
  /** null: the current one. */
  context: string | null;
  allowExec: boolean;
}

export function readKubeconfig(path: string, options: KubeconfigOptions): ClusterAccess {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new AccessError(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  return parseKubeconfig(text, path, options);
}

export function parseKubeconfig(text: string, path: string, { context, allowExec }: KubeconfigOptions): ClusterAccess {
  const wrong = (what: string): never => {
    throw new AccessError(`${path} ${what}`);
  };
  const config = parseYaml(text, wrong);
  const name = context ?? config['current-context'] ?? '';
  if (name === '') return wrong('has no current context: name one, as in kubernetes:my-context');
  const chosen = find(config.contexts, 'context', name) ?? wrong(`has no context ${name}`);
  const cluster = find(config.clusters, 'cluster', String(chosen.cluster)) ?? wrong(`has no cluster ${chosen.cluster}`);
  const user = chosen.user === undefined ? {} : find(config.users, 'user', String(chosen.user));
  if (!user) return wrong(`has no user ${chosen.user}`);
  const files = fileReader(dirname(resolve(path)), wrong);
  const server = URL.parse(String(cluster.server ?? ''));
  if (server?.protocol !== 'https:') return wrong(`has a cluster ${chosen.cluster} whose server is not https://…`);
  if (cluster['insecure-skip-tls-verify'] === true) {
    return wrong('has insecure-skip-tls-verify, which is not accepted: give certificate-authority instead');
  }
  if (cluster['proxy-url'] !== undefined) return wrong('has a proxy-url, which is not supported');
  return {
    server: server.href.replace(/\/+$/, ''),
    ca: files(cluster, 'certificate-authority'),
    serverName: optionalText(cluster['tls-server-name']),
    client: clientOf(user, files, wrong),
    token: tokenOf(user, allowExec, dirname(resolve(path)), wrong),
    namespace: optionalText(chosen.namespace),
  };
}

type Wrong = (what: string) => never;
type Files = (entry: Entry, name: string) => string | null;

function parseYaml(text: string, wrong: Wrong): Kubeconfig {
  try {
    const parsed = parse(text);
    if (typeof parsed === 'object' && parsed !== null) return parsed;
  } catch {}
  return wrong('is not a kubeconfig file');
}

function find(list: Named<Entry>[] | undefined, kind: 'context' | 'cluster' | 'user', name: string): Entry | undefined {
  return list?.find((entry) => entry.name === name)?.[kind] ?? undefined;
}

const optionalText = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

/** `name-data` in base64, or the file that `name` names, from the folder of the kubeconfig. */
function fileReader(folder: string, wrong: Wrong): Files {
  return (entry, name) => {
    const data = optionalText(entry[`${name}-data`]);
    if (data !== null) return Buffer.from(data, 'base64').toString('utf8');
    const path = optionalText(entry[name]);
    if (path === null) return null;
    try {
      return readFileSync(resolve(folder, path), 'utf8');
    } catch (error) {
      return wrong(`names ${path}, which cannot be read (${(error as NodeJS.ErrnoException).code})`);
    }
  };
}

function clientOf(user: Entry, files: Files, wrong: Wrong): ClusterAccess['client'] {
  const cert = files(user, 'client-certificate');
  const key = files(user, 'client-key');
  if (cert !== null && key !== null) return { cert, key };
  return cert === null && key === null ? null : wrong('has a client certificate without its key, or the reverse');
}

function tokenOf(user: Entry, allowExec: boolean, folder: string, wrong: Wrong): TokenSource | null {
  // As kubectl does: the file comes first.
  const path = optionalText(user.tokenFile);
  if (path !== null) return tokenFile(resolve(folder, path));
  const token = optionalText(user.token);
  if (token !== null) return async () => token;
  if (user.exec !== undefined) {
    if (allowExec) return execToken(user.exec as ExecPlugin, folder);
    return wrong(
      'gets its credentials from a program (exec), which is not run: set SLUICE_KUBERNETES_EXEC=on to allow it, ' +
        'or use a token of a service account',
    );
  }
  if (user['auth-provider'] !== undefined || user.username !== undefined) {
    return wrong('has a user with a password or an auth-provider, which Kubernetes no longer accepts');
  }
  return null;
}

const accountFolder = '/var/run/secrets/kubernetes.io/serviceaccount';

/** The service account that Kubernetes gives to a pod. `server`: where the pod finds the API. */
export function readInCluster(server: string, folder = accountFolder): ClusterAccess {
  const read = (name: string): string => {
    try {
      return readFileSync(`${folder}/${name}`, 'utf8');
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw new AccessError(`this is no pod with a service account: ${folder}/${name} cannot be read (${code})`);
    }
  };
  return {
    server,
    ca: read('ca.crt'),
    serverName: null,
    client: null,
    token: tokenFile(`${folder}/token`),
    namespace: read('namespace').trim(),
  };
}

/** Tokens of service accounts are replaced when four fifths of their time are over, so minutes before they expire. */
const rereadAfterMs = 30_000;

/** A token in a file, which is replaced there before it expires. */
export function tokenFile(path: string, now: () => number = () => performance.now()): TokenSource {
  let known: { token: string; at: number } | null = null;
  return async (anew) => {
    if (known && !anew && now() - known.at < rereadAfterMs) return known.token;
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      throw new AccessError(`the token in ${path} cannot be read (${error.code})`);
    });
    const token = text.trim();
    if (token === '') throw new AccessError(`${path} has no token`);
    known = { token, at: now() };
    return token;
  };
}

interface ExecPlugin {
  apiVersion?: unknown;
  command?: unknown;
  args?: unknown;
  env?: unknown;
}

const timeoutMs = 30_000;
const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** Before it expires, so that no request is under way with it then. */
const renewBeforeMs = 60_000;

/**
 * Credentials from a program (client.authentication.k8s.io), as kubeconfig files of the clouds have them. The program
 * gets its arguments as they are, without a shell.
 */
function execToken(plugin: ExecPlugin, folder: string, now: () => number = Date.now): TokenSource {
  const { apiVersion = 'client.authentication.k8s.io/v1', command, args = [], env = [] } = plugin;
  if (typeof command !== 'string' || command === '') throw new AccessError('the kubeconfig names no program to run');
  // As kubectl does: a path is seen from the folder of the kubeconfig, a bare name is looked for.
  const program = command.includes('/') && !isAbsolute(command) ? resolve(folder, command) : command;
  const own = Object.fromEntries((env as { name: string; value: string }[]).map(({ name, value }) => [name, value]));
  const info = JSON.stringify({ apiVersion, kind: 'ExecCredential', spec: { interactive: false } });
  let known: { token: string; until: number } | null = null;
  return async (anew) => {
    if (known && !anew && now() < known.until) return known.token;
    const { stdout } = await promisify(execFile)(program, (args as unknown[]).map(String), {
      // Not all that this service was started with: its own secrets are none of the program's business.
      env: { PATH: searchPath, HOME: homedir(), ...own, KUBERNETES_EXEC_INFO: info },
      timeout: timeoutMs,
      maxBuffer: 1024 * 1024,
    }).catch((error: Error & { code?: unknown }) => {
      // Not its output: that may be the secret.
      throw new AccessError(`${program}, which gives the credentials of the cluster, failed (${error.code})`);
    });
    known = readCredential(stdout, program);
    return known.token;
  };
}

function readCredential(text: string, program: string): { token: string; until: number } {
  try {
    const { status } = JSON.parse(text) as { status?: { token?: unknown; expirationTimestamp?: unknown } };
    const expires = Date.parse(String(status?.expirationTimestamp ?? ''));
    const until = Number.isNaN(expires) ? Number.POSITIVE_INFINITY : expires - renewBeforeMs;
    if (typeof status?.token === 'string' && status.token !== '') return { token: status.token, until };
  } catch {}
  throw new AccessError(`${program} gave no token; client certificates from a program are not supported`);
}

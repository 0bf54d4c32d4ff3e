// A kubeconfig file: one context of it, with its certificates and token. What would make the connection less safe than it
// looks is refused, and so are programs to run, unless they are allowed.
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import { AccessError, type ClusterAccess, type TokenSource } from './access.ts';
import { type ExecPlugin, execToken } from './exec-plugin.ts';
import { tokenFile } from './token-file.ts';

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

export interface KubeconfigOptions {
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

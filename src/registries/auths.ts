// Registry credentials from a file that `docker login` writes (config.json). Credential helpers are not run.
import { readFileSync } from 'node:fs';
import type { RegistryAuth } from '../engines/engine.ts';

/** Keyed by the registry's host, `docker.io` for Docker Hub. */
export type RegistryAuths = Map<string, RegistryAuth>;

export class RegistryConfigError extends Error {}

export function readRegistryAuths(path: string): RegistryAuths {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new RegistryConfigError(`cannot read ${path} (${(error as NodeJS.ErrnoException).code})`);
  }
  return parseRegistryAuths(text, path);
}

export function parseRegistryAuths(text: string, path: string): RegistryAuths {
  const wrong = (what: string): never => {
    throw new RegistryConfigError(`${path} ${what}`);
  };
  let auths: unknown;
  try {
    auths = JSON.parse(text)?.auths ?? {};
  } catch {
    wrong('is not JSON');
  }
  if (typeof auths !== 'object' || Array.isArray(auths)) wrong('has "auths" that are not an object');
  const found: RegistryAuths = new Map();
  for (const [server, entry] of Object.entries(auths as Record<string, Record<string, unknown> | null>)) {
    // A login through a credential helper leaves an empty entry.
    if (!entry || Object.keys(entry).length === 0) continue;
    found.set(registryHost(server), credentials(server, entry) ?? wrong(`has no usable "auth" for ${server}`));
  }
  return found;
}

function credentials(server: string, entry: Record<string, unknown>): RegistryAuth | null {
  const { auth, username, password, identitytoken } = entry;
  const token = typeof identitytoken === 'string' ? { identitytoken } : {};
  if (typeof auth === 'string' && auth !== '') {
    const [user = '', secret] = Buffer.from(auth, 'base64').toString('utf8').split(/:(.*)/s);
    if (user === '' || secret === undefined) return null;
    return { username: user, password: secret.replace(/\0+$/, ''), ...token, server };
  }
  if (typeof username === 'string' && typeof password === 'string') {
    return { username, password, ...token, server };
  }
  return 'identitytoken' in token ? { username: '', password: '', ...token, server } : null;
}

/** As image references are parsed: `docker.io` for Docker Hub. */
export function registryHost(server: string): string {
  const host = server.replace(/^https?:\/\//, '').split('/')[0]!;
  return ['index.docker.io', 'registry-1.docker.io'].includes(host) ? 'docker.io' : host;
}

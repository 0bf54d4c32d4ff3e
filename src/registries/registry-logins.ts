// With which login an image is pulled: one of the account that deploys it, and of no other. Logins that accounts added
// themselves take precedence over those that the operator put into a file, in the format that `docker login` writes
// (config.json). Credential helpers are not run.
import { readFileSync } from 'node:fs';
import { parseImage } from '../contract/references.ts';
import type { Db } from '../db/database.ts';
import type { RegistryAuth } from '../engines/engine.ts';
import type { Seal } from '../lib/seal.ts';
import { StartError } from '../lib/start-error.ts';
import { listLogins } from './registry-queries.ts';

export const passwordContext = (id: string): string => `registry password ${id}`;

export interface RegistryLogins {
  /** null: none is known, so the image is pulled as anyone may. */
  find(projectId: string, image: string): Promise<RegistryAuth | null>;
}

/** A file as `docker login` writes it; `account` null: for the first account, that of the operator. */
interface LoginFile {
  account: string | null;
  path: string;
}

/** A file that cannot be read stops the start. */
export function registryLogins({ db, seal, files }: { db: Db; seal: Seal; files: LoginFile[] }): RegistryLogins {
  for (const { path } of files) requireReadable(path);
  return {
    async find(projectId, image) {
      const host = parseImage(image)?.registry;
      const project = await db
        .selectFrom('project')
        .select('account_id')
        .where('id', '=', projectId)
        .executeTakeFirst();
      if (host === undefined || !project) return null;
      const own = await listLogins(db, project.account_id, host);
      const chosen =
        own.find(({ project_ids }) => project_ids?.includes(projectId)) ??
        own.find(({ project_ids }) => project_ids === null);
      if (chosen) {
        const password = seal.open(chosen.password_sealed, passwordContext(chosen.id));
        return { username: chosen.username, password, server: host };
      }
      return fromFiles(db, files, project.account_id, host);
    },
  };
}

function requireReadable(path: string): void {
  try {
    readRegistryAuths(path);
  } catch (error) {
    if (error instanceof RegistryConfigError) throw new StartError(`SLUICE_REGISTRY_CONFIG ${error.message}`);
    throw error;
  }
}

/** Read for every pull, because many registries issue passwords that expire within hours. */
async function fromFiles(db: Db, files: LoginFile[], accountId: string, host: string): Promise<RegistryAuth | null> {
  if (files.length === 0) return null;
  const first = await db.selectFrom('account').select('id').orderBy('id').limit(1).executeTakeFirst();
  const own = files.filter(({ account }) => (account ?? first?.id) === accountId);
  return own.map(({ path }) => readRegistryAuths(path).get(host)).find((auth) => auth !== undefined) ?? null;
}

/** Keyed by the registry's host, `docker.io` for Docker Hub. */
type RegistryAuths = Map<string, RegistryAuth>;

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

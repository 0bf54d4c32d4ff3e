// With which login an image is pulled: one of the account that deploys it, and of no other. Logins that accounts added
// themselves come before those that the operator put into a file for them.
import { parseImage } from '../contract/image-reference.ts';
import type { Db } from '../db/database.ts';
import type { RegistryAuth } from '../engines/engine.ts';
import type { Seal } from '../lib/seal.ts';
import { StartError } from '../lib/start-error.ts';
import { RegistryConfigError, readRegistryAuths } from './auths.ts';
import { listLogins } from './queries.ts';

export const passwordContext = (id: string): string => `registry password ${id}`;

export interface RegistryLogins {
  /** null: none is known, so the image is pulled as anyone may. */
  find(projectId: string, image: string): Promise<RegistryAuth | null>;
}

/** A file as `docker login` writes it; `account` null: for the first account, that of the operator. */
export interface LoginFile {
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

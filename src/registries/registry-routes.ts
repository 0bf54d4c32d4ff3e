import { ApiError, notFound, quotaExceeded } from '../contract/errors.ts';
import * as contract from '../contract/registries.ts';
import type { Caller } from '../contract/scopes.ts';
import type { Db } from '../db/database.ts';
import { lockRow } from '../db/guarded.ts';
import { type ServedRoute, serve } from '../http/api/served-route.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import type { Seal } from '../lib/seal.ts';
import { listKnownProjects } from '../projects/project-queries.ts';
import { passwordContext, registryHost } from './registry-logins.ts';
import {
  countRegistries,
  deleteRegistry,
  insertRegistry,
  listRegistries,
  presentRegistry,
  type RegistryRow,
  requireRegistry,
} from './registry-queries.ts';

const maxRegistries = 100;

interface RegistryParts {
  ids: IdSource;
  clock: Clock;
  seal: Seal;
}

export function registryRoutes({ ids, clock, seal }: RegistryParts): ServedRoute[] {
  return [
    serve(contract.listRegistries, async (call, db) => {
      const rows = await listRegistries(db, call.caller, call.page);
      return { body: call.paginate(rows, (row) => row.id, presentRegistry) };
    }),

    serve(contract.createRegistry, async (call, tx) => {
      const { caller, body } = call;
      const projectIds = await requireProjects(tx, caller, body.project_ids);
      await lockRow(tx, 'account', caller.accountId);
      if ((await countRegistries(tx, caller.accountId)) >= maxRegistries) {
        throw quotaExceeded(`An account has at most ${maxRegistries} logins.`, 'registries', maxRegistries);
      }
      const id = ids('reg');
      const row: RegistryRow = {
        id,
        account_id: caller.accountId,
        host: registryHost(body.host),
        username: body.username,
        password_sealed: seal.seal(body.password, passwordContext(id)),
        bound: projectIds === null ? 0 : 1,
        project_ids: projectIds,
        created_at: clock.now(),
        version: 1,
      };
      await insertRegistry(tx, row);
      return { body: presentRegistry(row), version: row.version, location: `/registries/${id}` };
    }),

    serve(contract.getRegistry, async (call, db) => {
      const row = await requireRegistry(db, call.caller, call.params.reg);
      return { body: presentRegistry(row), version: row.version };
    }),

    serve(contract.deleteRegistry, async (call, tx) => {
      const row = await requireRegistry(tx, call.caller, call.params.reg);
      call.expectVersion(row.version);
      await deleteRegistry(tx, row);
      return { body: undefined, before: presentRegistry(row) };
    }),
  ];
}

/** By default, a token that is bound to projects creates logins for the same projects. */
async function requireProjects(db: Db, caller: Caller, asked: string[] | null | undefined): Promise<string[] | null> {
  const projectIds = asked === undefined ? caller.projectIds && [...caller.projectIds] : asked;
  if (projectIds === null) {
    if (caller.projectIds === null) return null;
    throw new ApiError('insufficient_scope', 'A token bound to projects creates logins for some of them only.', {
      details: [{ path: 'body.project_ids', message: 'must be some of the projects this token is bound to' }],
    });
  }
  const known = new Set(await listKnownProjects(db, caller, projectIds));
  const unknown = projectIds.find((id) => !known.has(id));
  if (unknown) throw notFound('id', unknown);
  return projectIds;
}

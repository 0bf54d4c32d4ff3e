import * as contract from '../contract/environments.ts';
import { ApiError, notFound } from '../contract/errors.ts';
import type { Db } from '../db/database.ts';
import { isUniqueViolation } from '../db/errors.ts';
import { type Caller, type ServedRoute, serve } from '../http/route.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import type { Seal } from '../lib/seal.ts';
import { requireProject } from '../projects/queries.ts';
import type { Regions } from '../regions/regions.ts';
import { changeEnvironment, newEnvironment } from './change.ts';
import { freeHost } from './host.ts';
import {
  countEnvironments,
  deleteEnvironment,
  type EnvironmentRow,
  environmentKey,
  findEnvironment,
  insertEnvironment,
  listEnvironments,
  presentEnvironment,
  updateEnvironment,
} from './queries.ts';

const maxEnvironments = 100;

export interface EnvironmentParts {
  ids: IdSource;
  clock: Clock;
  seal: Seal;
  regions: Regions;
  urlOf(host: string): string;
}

export function environmentRoutes({ ids, clock, seal, regions, urlOf }: EnvironmentParts): ServedRoute[] {
  const present = (row: EnvironmentRow) => presentEnvironment(row, urlOf);
  return [
    serve(contract.listEnvironments, async (ask, db) => {
      const project = await requireProject(db, ask.caller, ask.params.id);
      const rows = await listEnvironments(db, project.id, ask.page);
      return { body: ask.paginate(rows, environmentKey, present) };
    }),

    serve(contract.createEnvironment, async (ask, tx) => {
      const project = await requireProject(tx, ask.caller, ask.params.id);
      const { name, region, ...changes } = ask.body;
      if (await findEnvironment(tx, project.id, name)) throw environmentExists(name);
      if ((await countEnvironments(tx, project.id)) >= maxEnvironments) {
        throw new ApiError('quota_exceeded', `A project has at most ${maxEnvironments} environments.`, {
          details: [{ path: 'environments', message: `at most ${maxEnvironments}` }],
        });
      }
      const host = await freeHost(tx, ids, project.slug, name);
      const fresh = newEnvironment({ projectId: project.id, name, region: regions.choose(region), host }, clock.now());
      const row = changeEnvironment(fresh, changes, seal, clock.now());
      try {
        await insertEnvironment(tx, row);
      } catch (error) {
        throw isUniqueViolation(error) ? environmentExists(name) : error;
      }
      return {
        body: present(row),
        version: row.version,
        location: `/projects/${project.id}/environments/${name}`,
      };
    }),

    serve(contract.getEnvironment, async (ask, db) => {
      const row = await requireEnvironment(db, ask.caller, ask.params);
      return { body: present(row), version: row.version };
    }),

    serve(contract.updateEnvironment, async (ask, tx) => {
      const row = await requireEnvironment(tx, ask.caller, ask.params);
      ask.expectVersion(row.version);
      const changed = changeEnvironment(row, ask.body, seal, clock.now());
      await updateEnvironment(tx, changed);
      return { body: present(changed), version: row.version + 1 };
    }),

    serve(contract.deleteEnvironment, async (ask, tx) => {
      const row = await requireEnvironment(tx, ask.caller, ask.params);
      ask.expectVersion(row.version);
      await deleteEnvironment(tx, row);
      return { body: undefined };
    }),
  ];
}

async function requireEnvironment(
  db: Db,
  caller: Caller,
  params: { id: string; name: string },
): Promise<EnvironmentRow> {
  const project = await requireProject(db, caller, params.id);
  const row = await findEnvironment(db, project.id, params.name);
  if (!row) throw notFound('name', params.name);
  return row;
}

const environmentExists = (name: string) =>
  new ApiError('environment_exists', `The project has an environment ${name}.`, {
    details: [{ path: 'body.name', message: name }],
  });

import { insertDefaultRules } from '../alerts/defaults.ts';
import { endAlertsOf } from '../alerts/incidents.ts';
import * as contract from '../contract/environments.ts';
import { ApiError } from '../contract/errors.ts';
import type { Db } from '../db/database.ts';
import { isUniqueViolation } from '../db/errors.ts';
import { deploymentInProgress } from '../deployments/in-progress.ts';
import { type EnvironmentKey, findInProgress } from '../deployments/queries.ts';
import { type ServedRoute, serve } from '../http/api/route.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import type { Seal } from '../lib/seal.ts';
import { requireProject } from '../projects/queries.ts';
import type { Regions } from '../regions/regions.ts';
import { touchRouting } from '../traffic/queries.ts';
import { changeEnvironment, newEnvironment } from './change.ts';
import { freeHost } from './host.ts';
import {
  countEnvironments,
  deleteEnvironment,
  type EnvironmentRow,
  environmentKey,
  findEnvironment,
  findLive,
  insertEnvironment,
  listEnvironments,
  presentEnvironment,
  requireEnvironment,
  updateEnvironment,
} from './queries.ts';

const maxEnvironments = 100;

export interface EnvironmentParts {
  ids: IdSource;
  clock: Clock;
  seal: Seal;
  regions: Regions;
  urlOf(host: string): string;
  /** Something about this environment may have to be done. */
  kick(key: EnvironmentKey): void;
}

export function environmentRoutes({ ids, clock, seal, regions, urlOf, kick }: EnvironmentParts): ServedRoute[] {
  const present = async (db: Db, row: EnvironmentRow) =>
    presentEnvironment(row, urlOf, (await findLive(db, row.project_id, [row.name])).get(row.name));
  return [
    serve(contract.listEnvironments, async (ask, db) => {
      const project = await requireProject(db, ask.caller, ask.params.id);
      const rows = await listEnvironments(db, project.id, ask.page);
      const live = await findLive(
        db,
        project.id,
        rows.map((row) => row.name),
      );
      return { body: ask.paginate(rows, environmentKey, (row) => presentEnvironment(row, urlOf, live.get(row.name))) };
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
      await insertDefaultRules(tx, { ids, clock }, { projectId: project.id, environment: name });
      return {
        body: presentEnvironment(row, urlOf),
        version: row.version,
        location: `/projects/${project.id}/environments/${name}`,
      };
    }),

    serve(contract.getEnvironment, async (ask, db) => {
      const row = await requireEnvironment(db, ask.caller, ask.params);
      return { body: await present(db, row), version: row.version };
    }),

    serve(contract.updateEnvironment, async (ask, tx) => {
      const row = await requireEnvironment(tx, ask.caller, ask.params);
      ask.expectVersion(row.version);
      const changed = changeEnvironment(row, ask.body, seal, clock.now());
      await updateEnvironment(tx, changed);
      ask.afterCommit(() => kick({ projectId: row.project_id, environment: row.name }));
      return { body: await present(tx, changed), version: row.version + 1 };
    }),

    serve(contract.deleteEnvironment, async (ask, tx) => {
      const row = await requireEnvironment(tx, ask.caller, ask.params);
      ask.expectVersion(row.version);
      const key = { projectId: row.project_id, environment: row.name };
      const busy = await findInProgress(tx, key);
      if (busy) throw deploymentInProgress(busy);
      await endAlertsOf(tx, { ids, clock }, key);
      await deleteEnvironment(tx, row);
      await touchRouting(tx);
      ask.afterCommit(() => kick(key));
      return { body: undefined };
    }),
  ];
}

const environmentExists = (name: string) =>
  new ApiError('environment_exists', `The project has an environment ${name}.`, {
    details: [{ path: 'body.name', message: name }],
  });

import { insertDefaultRules } from '../alerts/defaults.ts';
import { endAlertsOf } from '../alerts/incidents.ts';
import * as contract from '../contract/environments.ts';
import { ApiError, quotaExceeded } from '../contract/errors.ts';
import type { Db } from '../db/database.ts';
import { isUniqueViolation } from '../db/errors.ts';
import { deploymentInProgress } from '../deployments/in-progress.ts';
import { findInProgress } from '../deployments/queries.ts';
import { type ServedRoute, serve } from '../http/api/route.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import type { Seal } from '../lib/seal.ts';
import { requireProject } from '../projects/queries.ts';
import type { Regions } from '../regions/regions.ts';
import { touchRouting } from '../traffic/queries.ts';
import { changeEnvironment, newEnvironment } from './change.ts';
import { freeHost } from './host.ts';
import type { EnvironmentKey } from './key.ts';
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
    serve(contract.listEnvironments, async (call, db) => {
      const project = await requireProject(db, call.caller, call.params.id);
      const rows = await listEnvironments(db, project.id, call.page);
      const live = await findLive(
        db,
        project.id,
        rows.map((row) => row.name),
      );
      return { body: call.paginate(rows, environmentKey, (row) => presentEnvironment(row, urlOf, live.get(row.name))) };
    }),

    serve(contract.createEnvironment, async (call, tx) => {
      const project = await requireProject(tx, call.caller, call.params.id);
      const { name, region, ...changes } = call.body;
      if (await findEnvironment(tx, project.id, name)) throw environmentExists(name);
      if ((await countEnvironments(tx, project.id)) >= maxEnvironments) {
        throw quotaExceeded(`A project has at most ${maxEnvironments} environments.`, 'environments', maxEnvironments);
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

    serve(contract.getEnvironment, async (call, db) => {
      const row = await requireEnvironment(db, call.caller, call.params);
      return { body: await present(db, row), version: row.version };
    }),

    serve(contract.updateEnvironment, async (call, tx) => {
      const row = await requireEnvironment(tx, call.caller, call.params);
      call.expectVersion(row.version);
      const changed = changeEnvironment(row, call.body, seal, clock.now());
      await updateEnvironment(tx, changed);
      call.afterCommit(() => kick({ projectId: row.project_id, environment: row.name }));
      return { body: await present(tx, changed), version: row.version + 1 };
    }),

    serve(contract.deleteEnvironment, async (call, tx) => {
      const row = await requireEnvironment(tx, call.caller, call.params);
      call.expectVersion(row.version);
      const key = { projectId: row.project_id, environment: row.name };
      const busy = await findInProgress(tx, key);
      if (busy) throw deploymentInProgress(busy);
      await endAlertsOf(tx, { ids, clock }, key);
      await deleteEnvironment(tx, row);
      await touchRouting(tx);
      call.afterCommit(() => kick(key));
      return { body: undefined };
    }),
  ];
}

const environmentExists = (name: string) =>
  new ApiError('environment_exists', `The project has an environment ${name}.`, {
    details: [{ path: 'body.name', message: name }],
  });

import * as contract from '../contract/environments.ts';
import type { Db } from '../db/database.ts';
import { type ServedRoute, serve } from '../http/api/route.ts';
import type { Clock } from '../lib/clock.ts';
import type { Seal } from '../lib/seal.ts';
import { requireProject } from '../projects/queries.ts';
import { publish } from '../signals/signals.ts';
import { changeEnvironment } from './change.ts';
import {
  type EnvironmentRow,
  findLive,
  listEnvironments,
  pageKeyOf,
  presentEnvironment,
  requireEnvironment,
  updateEnvironment,
} from './queries.ts';

interface EnvironmentParts {
  clock: Clock;
  seal: Seal;
  urlOf(host: string): string;
}

export function environmentRoutes({ clock, seal, urlOf }: EnvironmentParts): ServedRoute[] {
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
      return { body: call.paginate(rows, pageKeyOf, (row) => presentEnvironment(row, urlOf, live.get(row.name))) };
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
      publish(tx, 'environments', { projectId: row.project_id, environment: row.name });
      return { body: await present(tx, changed), version: row.version + 1 };
    }),
  ];
}

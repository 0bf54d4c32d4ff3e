import type { Quotas } from '../accounts/quotas.ts';
import * as contract from '../contract/environments.ts';
import type { Db } from '../db/database.ts';
import { type ServedRoute, serve } from '../http/api/served-route.ts';
import type { Clock } from '../lib/clock.ts';
import type { Seal } from '../lib/seal.ts';
import { requireProject } from '../projects/project-queries.ts';
import { publish } from '../signals/signals.ts';
import { changeEnvironment } from './change-environment.ts';
import {
  type EnvironmentRow,
  findLive,
  type Live,
  listEnvironments,
  pageKeyOf,
  presentEnvironment,
  requireEnvironment,
  updateEnvironment,
} from './environment-queries.ts';
import { comparePending, dropUnusedVariables, openVariables, storeVariables } from './revision-settings.ts';

interface EnvironmentParts {
  clock: Clock;
  seal: Seal;
  quotas: Quotas;
  urlOf(host: string): string;
}

export function environmentRoutes({ clock, seal, quotas, urlOf }: EnvironmentParts): ServedRoute[] {
  const pendingChanges = comparePending(seal);
  const presentLive = async (db: Db, row: EnvironmentRow, live: Live) =>
    presentEnvironment(
      row,
      urlOf,
      live,
      live.settings ? await pendingChanges(db, withPort(row, live.settings), live.settings) : [],
    );
  const present = async (db: Db, row: EnvironmentRow) =>
    presentLive(db, row, (await findLive(db, row.project_id, [row.name])).get(row.name)!);
  return [
    serve(contract.listEnvironments, async (call, db) => {
      const project = await requireProject(db, call.caller, call.params.id);
      const rows = await listEnvironments(db, project.id, call.page);
      const live = await findLive(
        db,
        project.id,
        rows.map((row) => row.name),
      );
      const shown = new Map<string, contract.Environment>();
      for (const row of rows) shown.set(row.name, await presentLive(db, row, live.get(row.name)!));
      return { body: call.paginate(rows, pageKeyOf, ({ name }) => shown.get(name)!) };
    }),

    serve(contract.getEnvironment, async (call, db) => {
      const row = await requireEnvironment(db, call.caller, call.params);
      return { body: await present(db, row), version: row.version };
    }),

    serve(contract.updateEnvironment, async (call, tx) => {
      const row = await requireEnvironment(tx, call.caller, call.params);
      call.expectVersion(row.version);
      const before = await present(tx, row);
      const had = call.body.variables ? await openVariables(tx, row.variables_sealed, row, seal) : {};
      const { row: changed, variables } = changeEnvironment(row, call.body, had, seal, clock.now());
      await quotas.within(tx, call.caller.accountId, resourcesIn(call.body), async () => {
        await updateEnvironment(tx, changed);
        if (variables) await storeVariables(tx, row, variables);
        if (call.body.variables) await dropUnusedVariables(tx, row);
      });
      publish(tx, 'environments', { projectId: row.project_id, environment: row.name });
      return {
        body: await present(tx, changed),
        before,
        changedSecrets: replaced(before, call.body),
        version: row.version + 1,
      };
    }),
  ];
}

/** What may be more of after these changes. */
export const resourcesIn = ({ replicas, resources, variables }: contract.EnvironmentChanges) => [
  ...(replicas === undefined ? [] : (['instances', 'memory_mb'] as const)),
  ...(resources?.memory_mb === undefined ? [] : (['memory_mb'] as const)),
  ...(variables === undefined ? [] : (['variables_bytes'] as const)),
];

/** Variables that had a value and have another one. */
const replaced = ({ variables }: contract.Environment, changes: contract.EnvironmentChanges): string[] =>
  Object.entries(changes.variables ?? {})
    .filter(([name, value]) => value !== null && variables.includes(name))
    .map(([name]) => `variables.${name}`);

/** A port that was never set follows the image, which the next deployment asks again: that is no change. */
const withPort = (row: EnvironmentRow, { port }: { port: number }): EnvironmentRow =>
  row.port_set === 1 ? row : { ...row, port };

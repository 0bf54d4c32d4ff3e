import * as contract from '../../contract/deployments.ts';
import type { Db } from '../../db/database.ts';
import { keyOf } from '../../environments/key.ts';
import { type EnvironmentRow, findEnvironment } from '../../environments/queries.ts';
import { type ApiCall, type ServedRoute, serve } from '../../http/api/route.ts';
import { isoTime } from '../../lib/iso-time.ts';
import type { Regions } from '../../regions/regions.ts';
import { listInstances } from '../instances.ts';
import type { DeploymentRow } from '../queries.ts';
import { requireDeployment } from './require.ts';

const defaultLogTail = 100;
const maxLineLength = 20_000;

export const logRoutes = ({ regions }: { regions: Regions }): ServedRoute[] => [
  serve(contract.getDeploymentLogs, async (call, db) => {
    const row = await requireDeployment(db, call.caller, call.params);
    const environment = (await findEnvironment(db, row.project_id, row.environment))!;
    return { body: { data: await readLogs(regions, call.query, db, row, environment) } };
  }),
];

/** The latest lines of all instances of the deployment's revision, oldest first. */
async function readLogs(
  regions: Regions,
  query: ApiCall<typeof contract.getDeploymentLogs>['query'],
  db: Db,
  row: DeploymentRow,
  { region }: EnvironmentRow,
) {
  regions.requireAvailable(region);
  const { engine } = regions.find(region)!;
  const tail = query.tail ?? defaultLogTail;
  const sinceMs = query.since === undefined ? undefined : Date.parse(query.since);
  const own = (await listInstances(db, keyOf(row))).filter((item) => item.revision === row.revision);
  const lines = await Promise.all(
    own.map(async ({ id }) => {
      const found = await engine.logs(id, { tail, ...(sinceMs !== undefined && { sinceMs }) });
      return found.map((line) => ({ ...line, instance: id }));
    }),
  );
  return lines
    .flat()
    .sort((a, b) => a.at - b.at)
    .slice(-tail)
    .map(({ at, instance, stream, text }) => ({
      at: isoTime(at),
      instance,
      stream,
      text: text.slice(0, maxLineLength),
    }));
}

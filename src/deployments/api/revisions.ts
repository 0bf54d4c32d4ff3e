import { ApiError, notFound } from '../../contract/errors.ts';
import { revisionId, revisionNumber } from '../../contract/revision-id.ts';
import * as contract from '../../contract/revisions.ts';
import type { Db } from '../../db/database.ts';
import type { EnvironmentKey } from '../../environments/key.ts';
import { type EnvironmentRow, requireEnvironment } from '../../environments/queries.ts';
import { type ServedRoute, serve } from '../../http/api/route.ts';
import { publish } from '../../signals/signals.ts';
import { ineligibleReason, presentRevision } from '../present.ts';
import { findLastSuperseded, findRevision, listRevisions, type RevisionRow } from '../queries.ts';
import type { CreateParts } from './create.ts';
import { createDeployment } from './create.ts';

export function revisionRoutes(parts: CreateParts): ServedRoute[] {
  return [
    serve(contract.listRevisions, async (call, db) => {
      const environment = await requireEnvironment(db, call.caller, call.params);
      const rows = await listRevisions(db, keyOfEnvironment(environment), call.page);
      return { body: call.paginate(rows, (row) => String(row.number), presentRevision) };
    }),

    serve(contract.getRevision, async (call, db) => {
      const environment = await requireEnvironment(db, call.caller, call.params);
      return { body: presentRevision(await requireRevision(db, keyOfEnvironment(environment), call.params.r)) };
    }),

    serve(contract.rollbackEnvironment, async (call, tx) => {
      const environment = await requireEnvironment(tx, call.caller, call.params);
      const key = keyOfEnvironment(environment);
      const target =
        call.body.revision === undefined
          ? await findLastSuperseded(tx, key)
          : await requireRevision(tx, key, call.body.revision);
      if (!target) throw notEligible('there is no superseded revision');
      const reason = ineligibleReason(target);
      if (reason !== null) throw notEligible(`${revisionId(target.number)}: ${reason}`);
      const { row, body } = await createDeployment(tx, parts, call.caller, environment, {
        kind: 'rollback',
        image: target.image,
        digest: target.digest,
        strategy: 'blue_green',
        canaryPercent: null,
        note: call.body.reason ?? null,
        variablesSealed: target.variables_sealed,
        port: target.port,
        restoredFrom: target.number,
      });
      publish(tx, 'environments', key);
      return { body, version: row.version, location: `/projects/${row.project_id}/deployments/${row.id}` };
    }),
  ];
}

async function requireRevision(db: Db, key: EnvironmentKey, id: string): Promise<RevisionRow> {
  const row = await findRevision(db, key, revisionNumber(id));
  if (!row) throw notFound('r', id);
  return row;
}

const keyOfEnvironment = (row: EnvironmentRow): EnvironmentKey => ({
  projectId: row.project_id,
  environment: row.name,
});

const notEligible = (reason: string) =>
  new ApiError('revision_not_eligible', 'There is nothing to roll back to.', {
    details: [{ path: 'body.revision', message: reason }],
  });

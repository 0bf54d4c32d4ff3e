import type { PendingChange } from '../contract/environments.ts';
import { ApiError, notFound } from '../contract/errors.ts';
import { revisionId, revisionNumber } from '../contract/references.ts';
import * as contract from '../contract/revisions.ts';
import type { Db } from '../db/database.ts';
import { ChangedMeanwhile } from '../db/guarded.ts';
import type { EnvironmentKey } from '../environments/environment-key.ts';
import { type EnvironmentRow, requireEnvironment } from '../environments/environment-queries.ts';
import { comparePending } from '../environments/revision-settings.ts';
import { type ServedRoute, serve } from '../http/api/served-route.ts';
import type { Seal } from '../lib/seal.ts';
import { publish } from '../signals/signals.ts';
import { type CreateParts, createDeployment, rolloutChoicesOf } from './create-deployment.ts';
import {
  deploymentInProgress,
  findActiveRevision,
  findInProgress,
  findLastSuperseded,
  findPreviousRevision,
  findRevision,
  listRevisions,
  type RevisionRow,
} from './deployment-queries.ts';
import { ineligibleReason, presentRevision } from './present-deployment.ts';

export function revisionRoutes(parts: CreateParts & { seal: Seal }): ServedRoute[] {
  const compareSettings = comparePending(parts.seal);
  const compareRevisions = async (
    db: Db,
    environment: EnvironmentRow,
    from: RevisionRow | null,
    to: RevisionRow,
  ): Promise<PendingChange[]> => {
    const image = { field: 'image', from: from?.image ?? null, to: to.image };
    if (!from) return [{ ...image, change: 'added' }];
    const settings = await compareSettings(db, { ...to, name: environment.name }, from);
    return from.image === to.image && from.digest === to.digest
      ? settings
      : [{ ...image, change: 'changed' }, ...settings];
  };
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

    serve(contract.compareRevisions, async (call, db) => {
      const environment = await requireEnvironment(db, call.caller, call.params);
      const key = keyOfEnvironment(environment);
      const to = await requireRevision(db, key, call.params.r);
      const from =
        call.query.from === undefined
          ? await findPreviousRevision(db, key, to.deployment_id)
          : await requireRevision(db, key, call.query.from);
      const changes = await compareRevisions(db, environment, from ?? null, to);
      return { body: { from: from ? revisionId(from.number) : null, to: revisionId(to.number), changes } };
    }),

    serve(contract.rollbackEnvironment, async (call, tx) => {
      const environment = await requireEnvironment(tx, call.caller, call.params);
      const key = keyOfEnvironment(environment);
      const target =
        call.body.revision === undefined
          ? await findLastSuperseded(tx, key)
          : await requireRevision(tx, key, call.body.revision);
      if (!target) throw await whyNot(tx, key, nothingToRestore('there is no superseded revision'));
      const reason = ineligibleReason(target);
      if (reason !== null) throw nothingToRestore(`${revisionId(target.number)}: ${reason}`);
      const { row, body } = await createDeployment(tx, parts, call.caller, environment, {
        kind: 'rollback',
        image: target.image,
        digest: target.digest,
        strategy: 'blue_green',
        canaryPercent: null,
        note: call.body.reason ?? null,
        settings: target,
        restoredFrom: target.number,
      });
      publish(tx, 'environments', key);
      return { body, version: row.version, location: `/projects/${row.project_id}/deployments/${row.id}` };
    }),

    serve(contract.redeployEnvironment, async (call, tx) => {
      const rollout = rolloutChoicesOf(call.body);
      const environment = await requireEnvironment(tx, call.caller, call.params);
      const key = keyOfEnvironment(environment);
      const active = await findActiveRevision(tx, key);
      if (!active) throw await whyNot(tx, key, nothingToRedeploy(environment));
      const { row, body } = await createDeployment(tx, parts, call.caller, environment, {
        kind: 'deploy',
        image: active.image,
        digest: active.digest,
        ...rollout,
        settings: environment,
        restoredFrom: null,
      });
      // A deployment that ended a moment ago has put another revision in its place.
      if (row.previous_revision !== active.number) throw new ChangedMeanwhile();
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

/** Where there is nothing yet because a deployment is still under way, that is what the caller has to know. */
async function whyNot(db: Db, key: EnvironmentKey, otherwise: ApiError): Promise<ApiError> {
  const busy = await findInProgress(db, key);
  return busy ? deploymentInProgress(busy) : otherwise;
}

const nothingToRestore = (reason: string) =>
  new ApiError('revision_not_eligible', 'There is nothing to roll back to.', {
    details: [{ path: 'body.revision', message: reason }],
  });

const nothingToRedeploy = ({ name }: EnvironmentRow) =>
  new ApiError('revision_not_eligible', 'There is nothing to redeploy: the environment has no live revision.', {
    details: [{ path: 'environment.active_revision', message: `${name} has none; deploy an image first` }],
  });

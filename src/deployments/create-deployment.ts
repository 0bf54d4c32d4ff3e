// Creates a deployment in one local transaction: revision number, revision, record, timeline, event. It asks no engine
// and no registry.

import type { Quotas } from '../accounts/quotas.ts';
import type { Deployment, Pull, Strategy } from '../contract/deployments.ts';
import { ApiError } from '../contract/errors.ts';
import type { Caller } from '../contract/scopes.ts';
import type { Db } from '../db/database.ts';
import type { EnvironmentRow } from '../environments/environment-queries.ts';
import {
  dropUnusedVariables,
  type RevisionSettings,
  requireVariables,
  revisionSettingsOf,
} from '../environments/revision-settings.ts';
import { insertEvent } from '../events/outbox.ts';
import { type Clock, deadlineOf } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import type { Regions } from '../regions/regions.ts';
import {
  type DeploymentRow,
  deploymentInProgress,
  dropUnneededVariables,
  findActiveRevision,
  findInProgress,
  insertDeployment,
  insertRevision,
  insertTimeline,
  takeRevisionNumber,
} from './deployment-queries.ts';
import { presentDeployment } from './present-deployment.ts';
import { queuedForMs } from './rules/rollout.ts';

interface NewDeployment {
  kind: 'deploy' | 'rollback';
  image: string;
  /** Known already where an earlier revision is restored, else null. */
  digest: string | null;
  pull?: Pull;
  strategy: Strategy;
  canaryPercent: number | null;
  note: string | null;
  /** Those of the environment now, or of the revision that is restored. */
  settings: RevisionSettings;
  restoredFrom: number | null;
}

const defaultCanaryPercent = 10;

interface RolloutChoices {
  strategy?: Strategy | undefined;
  canary_percent?: number | undefined;
  note?: string | null | undefined;
}

/** As the body of a request names them. */
export function rolloutChoicesOf({
  strategy = 'rolling',
  canary_percent,
  note,
}: RolloutChoices): Pick<NewDeployment, 'strategy' | 'canaryPercent' | 'note'> {
  if (canary_percent !== undefined && strategy !== 'canary') throw percentWithoutCanary();
  const canaryPercent = strategy === 'canary' ? (canary_percent ?? defaultCanaryPercent) : null;
  return { strategy, canaryPercent, note: note ?? null };
}

const percentWithoutCanary = () =>
  new ApiError('invalid_request', 'canary_percent goes with strategy canary.', {
    details: [{ path: 'body.canary_percent', message: 'only with strategy canary' }],
  });

export interface CreateParts {
  ids: IdSource;
  clock: Clock;
  regions: Regions;
  quotas: Quotas;
}

interface Created {
  row: DeploymentRow;
  body: Deployment;
}

export function createDeployment(
  tx: Db,
  parts: CreateParts,
  caller: Caller,
  environment: EnvironmentRow,
  order: NewDeployment,
): Promise<Created> {
  if (environment.locked_reason !== null) throw locked(environment);
  // The environment may be one that runs nothing yet.
  return parts.quotas.within(tx, caller.accountId, ['instances', 'memory_mb'], () =>
    insertNew(tx, parts, caller, environment, order),
  );
}

async function insertNew(
  tx: Db,
  { ids, clock, regions }: CreateParts,
  caller: Caller,
  environment: EnvironmentRow,
  order: NewDeployment,
): Promise<Created> {
  const key = { projectId: environment.project_id, environment: environment.name };
  // Taking the number locks the environment: a request at the same time waits here, and then sees this deployment.
  const number = await takeRevisionNumber(tx, key);
  const busy = await findInProgress(tx, key);
  if (busy) throw deploymentInProgress(busy);
  regions.requireAvailable(environment.region);

  const nowMs = clock.now();
  const deadlineAt = deadlineOf(clock).now() + queuedForMs;
  const row = newRow(ids('dpl'), caller, environment, order, number, { nowMs, deadlineAt });
  row.previous_revision = (await findActiveRevision(tx, key))?.number ?? null;
  await insertDeployment(tx, row);
  await insertRevision(tx, {
    project_id: key.projectId,
    environment: key.environment,
    number,
    deployment_id: row.id,
    image: order.image,
    digest: order.digest,
    ...revisionSettingsOf(order.settings),
    state: 'pending',
    traffic_percent: 0,
    restored_from: order.restoredFrom,
    created_at: nowMs,
    activated_at: null,
    retired_at: null,
  });
  await requireVariables(tx, order.settings.variables_sealed, environment);
  await dropUnneededVariables(tx, key, number);
  await dropUnusedVariables(tx, environment);
  const begun = { deployment_id: row.id, at: nowMs, state: row.state, message: 'Accepted.' };
  await insertTimeline(tx, begun);
  const body = presentDeployment(row, [{ ...begun, seq: 1 }]);
  await insertEvent(
    tx,
    { ids, clock },
    { type: 'deployment.created', accountId: row.account_id, projectId: row.project_id, data: body },
  );
  return { row, body };
}

function newRow(
  id: string,
  caller: Caller,
  environment: EnvironmentRow,
  order: NewDeployment,
  revision: number,
  { nowMs, deadlineAt }: { nowMs: number; deadlineAt: number },
): DeploymentRow {
  return {
    id,
    account_id: caller.accountId,
    project_id: environment.project_id,
    environment: environment.name,
    kind: order.kind,
    revision,
    previous_revision: null,
    image: order.image,
    digest: order.digest,
    pull: order.pull ?? 'always',
    strategy: order.strategy,
    canary_percent: order.canaryPercent,
    state: 'queued',
    state_since: nowMs,
    deadline_at: deadlineAt,
    canary_phase: null,
    canary_step: 0,
    canary_percent_now: 0,
    step_since: null,
    step_baseline: null,
    measured_at: null,
    replaced_instance: null,
    step_until: null,
    failure_code: null,
    failure_message: null,
    failure_log: null,
    cause: null,
    note: order.note,
    created_by: caller.tokenId,
    created_at: nowMs,
    started_at: null,
    finished_at: null,
    version: 1,
  };
}

const locked = ({ name, locked_reason }: EnvironmentRow): ApiError =>
  new ApiError('environment_locked', `The environment ${name} is locked: ${locked_reason}`, {
    details: [{ path: 'environment.locked', message: locked_reason! }],
  });

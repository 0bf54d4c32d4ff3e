// Writes one step of a rollout in one transaction: the record, its timeline, its revisions, and the events.
import type { Deployment } from '../contract/deployments.ts';
import type { Db } from '../db/database.ts';
import { type EnvironmentKey, keyOf } from '../environments/environment-key.ts';
import type { EnvironmentRow } from '../environments/environment-queries.ts';
import { insertEvent } from '../events/outbox.ts';
import { type Clock, databaseOf, deadlineOf } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import { publish } from '../signals/signals.ts';
import { baselineOf } from './canary-traffic.ts';
import {
  type DeploymentRow,
  findRevision,
  insertTimeline,
  listSuperseded,
  listTimelines,
  updateDeployment,
  updateRevision,
} from './deployment-queries.ts';
import type { InstanceRow } from './instance-queries.ts';
import { presentDeployment, presentRevision } from './present-deployment.ts';
import type { Step } from './rules/rollout.ts';
import { saveShares } from './traffic-shares.ts';

interface SaveParts {
  ids: IdSource;
  clock: Clock;
}

interface SeenAtStep {
  logTail?: string[];
  /** What the step rests on: that those of them which were healthy are. */
  instances?: readonly InstanceRow[];
}

export async function saveStep(
  tx: Db,
  parts: SaveParts,
  environment: EnvironmentRow,
  row: DeploymentRow,
  step: Step,
  percents: readonly number[],
  { logTail = [], instances = [] }: SeenAtStep = {},
): Promise<DeploymentRow> {
  const nowMs = parts.clock.now();
  const saved = await updateDeployment(tx, row, {
    ...changesOf(row, step, percents, nowMs, logTail),
    ...(step.begins && (await measuredFromNow(tx, parts.clock, row))),
  });
  await insertTimeline(tx, { deployment_id: row.id, at: nowMs, state: step.to, message: step.message });
  const key = keyOf(row);
  const { digest, port } = step;
  if (digest) await updateRevision(tx, key, row.revision, { digest, ...(port !== undefined && { port }) });
  await changeRevisions(tx, parts, environment, instances, row, saved, step.goesOnServing === true);
  if (saved.finished_at !== null) await insertEndEvent(tx, parts, saved);
  publish(tx, 'changes', { accountId: row.account_id, ...key });
  return saved;
}

/** The canary is judged by what the routers count from now on. */
export async function measuredFromNow(tx: Db, clock: Clock, row: DeploymentRow) {
  const step_since = databaseOf(clock).now();
  return {
    step_since,
    step_baseline: await baselineOf(tx, row, step_since),
    measured_at: deadlineOf(clock).now(),
  };
}

function changesOf(
  row: DeploymentRow,
  step: Step,
  percents: readonly number[],
  nowMs: number,
  logTail: string[],
): Partial<DeploymentRow> {
  const ended = step.to === 'succeeded' || step.to === 'failed' || step.to === 'canceled';
  return {
    state: step.to,
    state_since: step.to === row.state ? row.state_since : nowMs,
    deadline_at: step.deadlineAt,
    started_at: row.started_at ?? nowMs,
    finished_at: ended ? nowMs : null,
    ...(step.digest && { digest: step.digest }),
    ...(step.failure && {
      failure_code: step.failure.code,
      failure_message: step.failure.message,
      failure_log: JSON.stringify(logTail),
    }),
    ...(step.cause && { cause: step.cause }),
    ...(step.replaces && { replaced_instance: step.replaces }),
    canary_phase: step.canary?.phase ?? null,
    ...(step.canary && {
      canary_step: step.canary.step,
      canary_percent_now: percents[step.canary.step - 1] ?? 0,
      step_until: step.canary.until,
    }),
  };
}

async function changeRevisions(
  tx: Db,
  parts: SaveParts,
  environment: EnvironmentRow,
  instances: readonly InstanceRow[],
  before: DeploymentRow,
  after: DeploymentRow,
  goesOnServing: boolean,
): Promise<void> {
  const key = keyOf(after);
  const nowMs = parts.clock.now();
  const { revision, previous_revision } = after;
  switch (after.state) {
    case 'canary':
      await updateRevision(tx, key, revision, { state: 'canary' });
      return saveShares(tx, after, after.canary_percent_now, instances);
    case 'aborting': {
      const current = await findRevision(tx, key, revision);
      if (previous_revision === null || !current || current.traffic_percent === 0) return;
      await updateRevision(tx, key, revision, { state: 'rolled_back' });
      return insertRollbackEvent(tx, parts, after, revision);
    }
    case 'failed':
    case 'canceled': {
      if (goesOnServing) {
        await saveShares(tx, after, 100, instances);
        await updateRevision(tx, key, revision, { state: 'active', activated_at: nowMs });
        return updateRevision(tx, key, previous_revision!, { state: 'superseded' });
      }
      const current = await findRevision(tx, key, revision);
      const state = current?.state === 'rolled_back' ? 'rolled_back' : 'failed';
      await updateRevision(tx, key, revision, { state });
      return saveShares(tx, after, 0, []);
    }
    case 'succeeded': {
      await saveShares(tx, after, 100, instances);
      await updateRevision(tx, key, revision, { state: 'active', activated_at: nowMs });
      if (previous_revision !== null) {
        const state = before.kind === 'rollback' ? 'rolled_back' : 'superseded';
        await updateRevision(tx, key, previous_revision, { state });
        if (state === 'rolled_back') await insertRollbackEvent(tx, parts, after, previous_revision);
      }
      return retireOld(tx, key, environment.retention, nowMs);
    }
    default:
      return;
  }
}

/** Only the latest of the revisions that once served stay eligible for rollback. */
async function retireOld(tx: Db, key: EnvironmentKey, retention: number, nowMs: number): Promise<void> {
  for (const { number } of (await listSuperseded(tx, key)).slice(retention)) {
    await updateRevision(tx, key, number, { state: 'retired', retired_at: nowMs });
  }
}

async function insertRollbackEvent(tx: Db, parts: SaveParts, deployment: DeploymentRow, number: number): Promise<void> {
  const revision = await findRevision(tx, keyOf(deployment), number);
  const cause = deployment.kind === 'rollback' && deployment.state === 'succeeded' ? 'manual' : deployment.cause;
  await insertEvent(tx, parts, {
    type: 'revision.rolled_back',
    accountId: deployment.account_id,
    projectId: deployment.project_id,
    data: { ...presentRevision(revision!), cause },
  });
}

/** Who may read events, or gets deliveries, may not read logs for that. */
function withoutLines(deployment: Deployment): Deployment {
  const { failure } = deployment;
  return failure === null ? deployment : { ...deployment, failure: { ...failure, log_tail: [] } };
}

async function insertEndEvent(tx: Db, parts: SaveParts, row: DeploymentRow): Promise<void> {
  const timeline = (await listTimelines(tx, [row.id])).get(row.id)!;
  await insertEvent(tx, parts, {
    type: row.state === 'succeeded' ? 'deployment.succeeded' : 'deployment.failed',
    accountId: row.account_id,
    projectId: row.project_id,
    data: withoutLines(presentDeployment(row, timeline)),
  });
}

// promote, pause, resume and abort: each is one step of the rollout, taken in the request itself.
import type { Caller } from '../../contract/caller.ts';
import * as contract from '../../contract/deployments.ts';
import { ApiError } from '../../contract/errors.ts';
import { revisionId } from '../../contract/revision-id.ts';
import type { Db } from '../../db/database.ts';
import { keyOf } from '../../environments/key.ts';
import { findEnvironment } from '../../environments/queries.ts';
import { type ServedRoute, serve } from '../../http/api/served-route.ts';
import { lastingOf } from '../../lib/clock.ts';
import { publish } from '../../signals/signals.ts';
import { findToken } from '../../tokens/queries.ts';
import { listInstances } from '../instances.ts';
import { type DeploymentRow, findRevision } from '../queries.ts';
import { percentsOf, policyOf, rolloutOf } from '../rules/situation.ts';
import { abort, advance, beginStep, hold, type Policy, type Rollout, type Step } from '../rules/steps.ts';
import { saveStep } from '../save-step.ts';
import type { CreateParts } from './create.ts';
import { loadDeployments } from './load.ts';
import { requireDeployment } from './require.ts';

export function rolloutCommandRoutes(parts: CreateParts): ServedRoute[] {
  const lasting = lastingOf(parts.clock);
  return [
    command(contract.promoteDeployment, parts, async ({ row, rollout, policy, caller }, tx) => {
      if (rollout.state !== 'canary') throw stateConflict(row, 'promoted');
      const instances = await listInstances(tx, keyOf(row));
      if (!instances.some((item) => item.revision === row.revision && item.state === 'healthy')) throw unhealthy(row);
      return advance(rollout, policy, lasting.now(), `Promoted by ${await tokenName(tx, caller)}.`);
    }),

    command(contract.pauseDeployment, parts, async ({ row, rollout, policy }) => {
      if (rollout.state !== 'canary' || rollout.phase === 'paused') throw stateConflict(row, 'paused');
      return hold(rollout, policy, lasting.now(), 'Paused.');
    }),

    command(contract.resumeDeployment, parts, async ({ row, rollout, policy }) => {
      if (rollout.phase !== 'paused') throw stateConflict(row, 'resumed');
      return beginStep(rollout, rollout.step, policy, lasting.now());
    }),

    command(contract.abortDeployment, parts, async ({ row, rollout, caller }, tx) => {
      const step = abort(rollout, await tokenName(tx, caller), lasting.now());
      if (!step && rollout.state !== 'aborting') throw stateConflict(row, 'aborted');
      return step;
    }),
  ];
}

interface Commanded {
  row: DeploymentRow;
  rollout: Rollout;
  policy: Policy;
  caller: Caller;
}

/** `stepOf` gives the step to take; null: there is nothing left to do. */
function command(
  declaration: typeof contract.promoteDeployment,
  parts: CreateParts,
  stepOf: (of: Commanded, tx: Db) => Promise<Step | null>,
): ServedRoute {
  return serve(declaration, async (call, tx) => {
    const row = await requireDeployment(tx, call.caller, call.params);
    const environment = (await findEnvironment(tx, row.project_id, row.environment))!;
    const fresh = (await findRevision(tx, keyOf(row), row.revision))!;
    const policy = policyOf(environment, fresh);
    const step = await stepOf({ row, rollout: rolloutOf(row, policy), policy, caller: call.caller }, tx);
    const saved = step ? await saveStep(tx, parts, environment, row, step, percentsOf(row, policy)) : row;
    publish(tx, 'environments', keyOf(row));
    return { body: (await loadDeployments(tx, [saved]))[0]!, version: saved.version };
  });
}

async function tokenName(tx: Db, caller: Caller): Promise<string> {
  return (await findToken(tx, caller, caller.tokenId))?.name ?? caller.tokenId;
}

const stateConflict = (row: DeploymentRow, what: string) =>
  new ApiError('deployment_state_conflict', `A deployment in state ${row.state} cannot be ${what}.`, {
    details: [{ path: 'deployment.state', message: row.canary_phase ? `${row.state}/${row.canary_phase}` : row.state }],
  });

const unhealthy = (row: DeploymentRow) =>
  new ApiError('canary_unhealthy', 'The canary has no healthy instance.', {
    details: [{ path: 'revision', message: revisionId(row.revision) }],
  });

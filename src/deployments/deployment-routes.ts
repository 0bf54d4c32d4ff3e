// Deployments in the API: listing, creating and reading them, and the commands promote, pause, resume and abort. A
// command takes one step of the rollout within the request itself.

import * as contract from '../contract/deployments.ts';
import { ApiError } from '../contract/errors.ts';
import { parseImage, revisionId } from '../contract/references.ts';
import type { Caller } from '../contract/scopes.ts';
import type { Db } from '../db/database.ts';
import { keyOf } from '../environments/environment-key.ts';
import { canaryPolicyOf, environmentUnknown, findEnvironment } from '../environments/environment-queries.ts';
import { type ServedRoute, serve } from '../http/api/served-route.ts';
import { type Clock, deadlineOf } from '../lib/clock.ts';
import type { Seal } from '../lib/seal.ts';
import { requireProject } from '../projects/project-queries.ts';
import { publish } from '../signals/signals.ts';
import { findToken } from '../tokens/token-queries.ts';
import { measureStep } from './canary-traffic.ts';
import { type CreateParts, createDeployment, rolloutChoicesOf } from './create-deployment.ts';
import {
  type DeploymentRow,
  findRevision,
  listDeployments,
  listTimelines,
  requireDeployment,
} from './deployment-queries.ts';
import { listInstances } from './instance-queries.ts';
import { instanceRoutes } from './instance-routes.ts';
import { type CanaryState, presentDeployment } from './present-deployment.ts';
import { revisionRoutes } from './revision-routes.ts';
import { judge } from './rules/analysis.ts';
import { percentsOf, policyOf, rolloutOf } from './rules/desired.ts';
import { abort, advance, beginStep, hold, type Policy, type Rollout, type Step } from './rules/rollout.ts';
import { saveStep } from './save-step.ts';
import { usageRoutes } from './usage-routes.ts';

export const deploymentRoutes = (parts: CreateParts & { seal: Seal }): ServedRoute[] => [
  ...deploymentRecordRoutes(parts),
  ...rolloutCommandRoutes(parts),
  ...revisionRoutes(parts),
  ...instanceRoutes(parts),
  ...usageRoutes(parts),
];

function deploymentRecordRoutes(parts: CreateParts): ServedRoute[] {
  return [
    serve(contract.listDeployments, async (call, db) => {
      const project = await requireProject(db, call.caller, call.params.id);
      const { rows, searchedTo } = await listDeployments(db, project.id, call.query, call.page);
      const shown = new Map((await loadDeployments(db, parts.clock, rows)).map((body) => [body.id, body]));
      return {
        body: call.paginate(
          rows,
          (row) => row.id,
          (row) => shown.get(row.id)!,
          searchedTo,
        ),
      };
    }),

    serve(contract.createDeployment, async (call, tx) => {
      const project = await requireProject(tx, call.caller, call.params.id);
      const { image, pull = 'always', ...choices } = call.body;
      refuseBadImage(image);
      const rollout = rolloutChoicesOf(choices);
      const environment = await findEnvironment(tx, project.id, call.body.environment);
      if (!environment) throw environmentUnknown(call.body.environment);
      const { row, body } = await createDeployment(tx, parts, call.caller, environment, {
        kind: 'deploy',
        image,
        digest: null,
        pull,
        ...rollout,
        settings: environment,
        restoredFrom: null,
      });
      publish(tx, 'environments', keyOf(row));
      return { body, version: row.version, location: `/projects/${project.id}/deployments/${row.id}` };
    }),

    serve(contract.getDeployment, async (call, db) => {
      const row = await requireDeployment(db, call.caller, call.params);
      return { body: (await loadDeployments(db, parts.clock, [row]))[0]!, version: row.version };
    }),
  ];
}

function refuseBadImage(image: string): void {
  if (parseImage(image)) return;
  throw new ApiError('invalid_request', 'The image is not a reference such as registry.example/name:tag.', {
    details: [{ path: 'body.image', message: 'must be registry/name:tag or name@sha256:…' }],
  });
}

function rolloutCommandRoutes(parts: CreateParts): ServedRoute[] {
  const deadlineClock = deadlineOf(parts.clock);
  return [
    command(contract.promoteDeployment, parts, async ({ row, rollout, policy, caller }, tx) => {
      if (rollout.state !== 'canary') throw stateConflict(row, 'promoted');
      const instances = await listInstances(tx, keyOf(row));
      if (!instances.some((item) => item.revision === row.revision && item.state === 'healthy')) throw unhealthy(row);
      return advance(rollout, policy, deadlineClock.now(), `Promoted by ${await tokenName(tx, caller)}.`);
    }),

    command(contract.pauseDeployment, parts, async ({ row, rollout, policy }) => {
      if (rollout.state !== 'canary' || rollout.phase === 'paused') throw stateConflict(row, 'paused');
      return hold(rollout, policy, deadlineClock.now(), 'Paused.');
    }),

    command(contract.resumeDeployment, parts, async ({ row, rollout, policy }) => {
      if (rollout.phase !== 'paused') throw stateConflict(row, 'resumed');
      return beginStep(rollout, rollout.step, policy, deadlineClock.now());
    }),

    command(contract.abortDeployment, parts, async ({ row, rollout, caller }, tx) => {
      const step = abort(rollout, await tokenName(tx, caller), deadlineClock.now());
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
    const target = (await findRevision(tx, keyOf(row), row.revision))!;
    const policy = policyOf(environment, target);
    const step = await stepOf({ row, rollout: rolloutOf(row, policy), policy, caller: call.caller }, tx);
    const saved = step ? await saveStep(tx, parts, environment, row, step, percentsOf(row, policy)) : row;
    publish(tx, 'environments', keyOf(row));
    const body = (await loadDeployments(tx, parts.clock, [saved]))[0]!;
    return { body, before: asItStood(row, body), version: saved.version };
  });
}

/** For the audit log: what a command changes of a deployment at once. */
const asItStood = (row: DeploymentRow, now: contract.Deployment): contract.Deployment => ({
  ...now,
  state: row.state,
  canary: now.canary && {
    ...now.canary,
    phase: row.canary_phase ?? now.canary.phase,
    step: row.canary_step,
    percent: row.canary_percent_now,
  },
});

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

/** Deployments as the API shows them, with their timelines and what was measured of canaries. */
async function loadDeployments(db: Db, clock: Clock, rows: DeploymentRow[]): Promise<contract.Deployment[]> {
  const timelines = await listTimelines(
    db,
    rows.map((row) => row.id),
  );
  return Promise.all(
    rows.map(async (row) => presentDeployment(row, timelines.get(row.id)!, await loadCanary(db, clock, row))),
  );
}

async function loadCanary(db: Db, clock: Clock, row: DeploymentRow): Promise<CanaryState | null> {
  if (row.canary_phase === null) return null;
  const environment = await findEnvironment(db, row.project_id, row.environment);
  if (!environment) return null;
  const canary = canaryPolicyOf(environment);
  const traffic = await measureStep(db, clock, row, canary);
  const analysis = judge(traffic, canary, percentsOf(row, { canary }).length, row.replaced_instance);
  return { traffic, analysis };
}

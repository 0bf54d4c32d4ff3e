import * as contract from '../../contract/deployments.ts';
import { ApiError, notFound } from '../../contract/errors.ts';
import { parseImage } from '../../contract/image-reference.ts';
import { revisionId, revisionNumber } from '../../contract/revision-id.ts';
import * as revisions from '../../contract/revisions.ts';
import type { Db } from '../../db/database.ts';
import type { EnvironmentKey } from '../../environments/key.ts';
import { type EnvironmentRow, findEnvironment, requireEnvironment } from '../../environments/queries.ts';
import { type ApiCall, type ServedRoute, serve } from '../../http/api/route.ts';
import { isoTime } from '../../lib/iso-time.ts';
import { requireProject } from '../../projects/queries.ts';
import { ineligibleReason, loadDeployments, presentRevision } from '../present.ts';
import {
  type DeploymentRow,
  findDeployment,
  findLastSuperseded,
  findRevision,
  listDeployments,
  listRevisions,
  type RevisionRow,
} from '../queries.ts';
import { listInstances } from '../reconcile/instances.ts';
import { saveStep } from '../reconcile/save.ts';
import { percentsOf, policyOf, rolloutOf } from '../reconcile/situation.ts';
import { abort, advance, beginStep, hold, type Policy, type Rollout, type Step } from '../rules/rollout.ts';
import { type CreateParts, createDeployment } from './create.ts';

export interface DeploymentParts extends CreateParts {
  kick(key: EnvironmentKey): void;
}

const defaultCanaryPercent = 10;
const defaultLogTail = 100;

export function deploymentRoutes(parts: DeploymentParts): ServedRoute[] {
  return [
    serve(contract.listDeployments, async (call, db) => {
      const project = await requireProject(db, call.caller, call.params.id);
      const rows = await listDeployments(db, project.id, call.query, call.page);
      const shown = new Map((await loadDeployments(db, rows)).map((body) => [body.id, body]));
      return {
        body: call.paginate(
          rows,
          (row) => row.id,
          (row) => shown.get(row.id)!,
        ),
      };
    }),

    serve(contract.createDeployment, async (call, tx) => {
      const project = await requireProject(tx, call.caller, call.params.id);
      const { image, strategy = 'rolling', canary_percent, note } = call.body;
      refuseBadImage(image);
      if (canary_percent !== undefined && strategy !== 'canary') throw percentWithoutCanary();
      const environment = await findEnvironment(tx, project.id, call.body.environment);
      if (!environment) throw environmentUnknown(call.body.environment);
      const { row, body } = await createDeployment(tx, parts, call.caller, environment, {
        kind: 'deploy',
        image,
        digest: null,
        strategy,
        canaryPercent: strategy === 'canary' ? (canary_percent ?? defaultCanaryPercent) : null,
        note: note ?? null,
        variablesSealed: environment.variables_sealed,
        port: environment.port,
        restoredFrom: null,
      });
      call.afterCommit(() => parts.kick(keyOf(row)));
      return { body, version: row.version, location: `/projects/${project.id}/deployments/${row.id}` };
    }),

    serve(contract.getDeployment, async (call, db) => {
      const row = await requireDeployment(call, db);
      return { body: (await loadDeployments(db, [row]))[0]!, version: row.version };
    }),

    command(contract.promoteDeployment, parts, async (row, rollout, policy, db) => {
      if (rollout.state !== 'canary') throw stateConflict(row, 'promoted');
      const instances = await listInstances(db, keyOf(row));
      if (!instances.some((item) => item.revision === row.revision && item.state === 'healthy')) throw unhealthy(row);
      return advance(rollout, policy, parts.clock.now());
    }),

    command(contract.pauseDeployment, parts, async (row, rollout, policy) => {
      if (rollout.state !== 'canary' || rollout.phase === 'paused') throw stateConflict(row, 'paused');
      return hold(rollout, policy, parts.clock.now(), 'Paused.');
    }),

    command(contract.resumeDeployment, parts, async (row, rollout, policy) => {
      if (rollout.phase !== 'paused') throw stateConflict(row, 'resumed');
      return beginStep(rollout, rollout.step, policy, parts.clock.now());
    }),

    command(contract.abortDeployment, parts, async (row, rollout) => {
      const step = abort(rollout, parts.clock.now());
      if (!step && rollout.state !== 'aborting') throw stateConflict(row, 'aborted');
      return step;
    }),

    serve(contract.getDeploymentLogs, async (call, db) => {
      const row = await requireDeployment(call, db);
      const environment = (await findEnvironment(db, row.project_id, row.environment))!;
      return { body: { data: await readLogs(call, db, row, environment) } };
    }),

    serve(revisions.listRevisions, async (call, db) => {
      const environment = await requireEnvironment(db, call.caller, call.params);
      const rows = await listRevisions(db, environmentKeyOf(environment), call.page);
      return { body: call.paginate(rows, (row) => String(row.number), presentRevision) };
    }),

    serve(revisions.getRevision, async (call, db) => {
      const environment = await requireEnvironment(db, call.caller, call.params);
      return { body: presentRevision(await requireRevision(db, environmentKeyOf(environment), call.params.r)) };
    }),

    serve(revisions.rollbackEnvironment, async (call, tx) => {
      const environment = await requireEnvironment(tx, call.caller, call.params);
      const key = environmentKeyOf(environment);
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
      call.afterCommit(() => parts.kick(key));
      return { body, version: row.version, location: `/projects/${row.project_id}/deployments/${row.id}` };
    }),
  ];

  async function readLogs(
    call: ApiCall<typeof contract.getDeploymentLogs>,
    db: Db,
    row: DeploymentRow,
    { region }: EnvironmentRow,
  ) {
    parts.regions.requireAvailable(region);
    const { engine } = parts.regions.find(region)!;
    const tail = call.query.tail ?? defaultLogTail;
    const sinceMs = call.query.since === undefined ? undefined : Date.parse(call.query.since);
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
      .map(({ at, instance, stream, text }) => ({ at: isoTime(at), instance, stream, text: text.slice(0, 20_000) }));
  }
}

type Command = typeof contract.promoteDeployment;

/** promote, pause, resume, abort: each is one step of the rollout, taken in the request itself. */
function command(
  declaration: Command,
  parts: DeploymentParts,
  stepOf: (row: DeploymentRow, rollout: Rollout, policy: Policy, db: Db) => Promise<Step | null>,
): ServedRoute {
  return serve(declaration, async (call, tx) => {
    const row = await requireDeployment(call, tx);
    const environment = (await findEnvironment(tx, row.project_id, row.environment))!;
    const policy = policyOf(environment);
    const step = await stepOf(row, rolloutOf(row, policy), policy, tx);
    const saved = step ? await saveStep(tx, parts, environment, row, step, percentsOf(row, policy)) : row;
    call.afterCommit(() => parts.kick(keyOf(row)));
    return { body: (await loadDeployments(tx, [saved]))[0]!, version: saved.version };
  });
}

async function requireDeployment(call: Pick<ApiCall<Command>, 'caller' | 'params'>, db: Db): Promise<DeploymentRow> {
  const project = await requireProject(db, call.caller, call.params.id);
  const row = await findDeployment(db, project.id, call.params.dpl);
  if (!row) throw notFound('dpl', call.params.dpl);
  return row;
}

async function requireRevision(db: Db, key: EnvironmentKey, id: string): Promise<RevisionRow> {
  const row = await findRevision(db, key, revisionNumber(id));
  if (!row) throw notFound('r', id);
  return row;
}

const keyOf = (row: DeploymentRow): EnvironmentKey => ({ projectId: row.project_id, environment: row.environment });
const environmentKeyOf = (row: EnvironmentRow): EnvironmentKey => ({
  projectId: row.project_id,
  environment: row.name,
});

function refuseBadImage(image: string): void {
  if (parseImage(image)) return;
  throw new ApiError('invalid_request', 'The image is not a reference such as registry.example/name:tag.', {
    details: [{ path: 'body.image', message: 'must be registry/name:tag or name@sha256:…' }],
  });
}

const percentWithoutCanary = () =>
  new ApiError('invalid_request', 'canary_percent goes with strategy canary.', {
    details: [{ path: 'body.canary_percent', message: 'only with strategy canary' }],
  });

const environmentUnknown = (name: string) =>
  new ApiError('environment_unknown', `The project has no environment ${name}.`, {
    details: [{ path: 'body.environment', message: name }],
  });

const stateConflict = (row: DeploymentRow, what: string) =>
  new ApiError('deployment_state_conflict', `A deployment in state ${row.state} cannot be ${what}.`, {
    details: [{ path: 'deployment.state', message: row.canary_phase ? `${row.state}/${row.canary_phase}` : row.state }],
  });

const unhealthy = (row: DeploymentRow) =>
  new ApiError('canary_unhealthy', 'The canary has no healthy instance.', {
    details: [{ path: 'revision', message: revisionId(row.revision) }],
  });

const notEligible = (reason: string) =>
  new ApiError('revision_not_eligible', 'There is nothing to roll back to.', {
    details: [{ path: 'body.revision', message: reason }],
  });

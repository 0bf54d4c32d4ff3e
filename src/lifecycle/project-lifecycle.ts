// Creating and deleting a project spans features: its first environment, that environment's alert rules, and what has
// to end or be cleaned up when it goes.
import type { Quotas } from '../accounts/quotas.ts';
import { insertDefaultRules } from '../alerts/default-rules.ts';
import { endAlertsOf } from '../alerts/incidents.ts';
import { ApiError } from '../contract/errors.ts';
import { createProject, deleteProject } from '../contract/projects.ts';
import type { Caller } from '../contract/scopes.ts';
import { isUniqueViolation } from '../db/database-errors.ts';
import { ChangedMeanwhile } from '../db/guarded.ts';
import { deploymentInProgress, findInProgressOf } from '../deployments/deployment-queries.ts';
import { newEnvironment } from '../environments/change-environment.ts';
import { freeHost, insertEnvironment, keepHosts } from '../environments/environment-queries.ts';
import { type ServedRoute, serve } from '../http/api/served-route.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import * as projects from '../projects/project-queries.ts';
import { freeSlug, slugOf, slugTaken } from '../projects/project-slugs.ts';
import type { Regions } from '../regions/regions.ts';
import { publish } from '../signals/signals.ts';
import { markRoutingChanged } from '../traffic/traffic-queries.ts';
import { isSmall, markProjectDeleted, ofProject, publishDomainsOf } from './removal.ts';

const firstEnvironment = 'production';

interface ProjectLifecycleParts {
  ids: IdSource;
  clock: Clock;
  regions: Regions;
  quotas: Quotas;
  /** For how long a deleted environment's address is kept for its account. */
  hostKeptMs?: number;
}

export function projectLifecycleRoutes({
  ids,
  clock,
  regions,
  quotas,
  hostKeptMs = 0,
}: ProjectLifecycleParts): ServedRoute[] {
  return [
    serve(createProject, async (call, tx) => {
      refuseBoundToken(call.caller);
      const { body, caller } = call;
      const region = regions.choose(body.region);
      const slug = body.slug ?? (await freeSlug(tx, ids, caller.accountId, slugOf(body.name)));
      const nowMs = clock.now();
      const row: projects.ProjectRow = {
        id: ids('prj'),
        account_id: caller.accountId,
        name: body.name,
        slug,
        description: body.description ?? null,
        labels: JSON.stringify(body.labels ?? []),
        next_sequence: 1,
        backlog: 0,
        deleted_at: null,
        created_at: nowMs,
        updated_at: nowMs,
        version: 1,
      };
      const environment = await quotas.within(tx, caller.accountId, ['projects', 'environments'], async () => {
        try {
          await projects.insertProject(tx, row);
        } catch (error) {
          if (!isUniqueViolation(error)) throw error;
          // A slug derived from the name was taken by a concurrent request: the next attempt finds the next free one.
          throw body.slug === undefined ? new ChangedMeanwhile() : slugTaken(slug);
        }
        const host = await freeHost(tx, { ids, clock }, { accountId: caller.accountId, slug }, firstEnvironment);
        const first = newEnvironment({ projectId: row.id, name: firstEnvironment, region, host }, nowMs);
        await insertEnvironment(tx, first);
        return first;
      });
      await insertDefaultRules(tx, { ids, clock }, { projectId: row.id, environment: firstEnvironment });
      return {
        body: projects.presentProject(row, [environment]),
        version: row.version,
        location: `/projects/${row.id}`,
        projectId: row.id,
      };
    }),

    serve(deleteProject, async (call, tx) => {
      const row = await projects.requireProject(tx, call.caller, call.params.id);
      call.expectVersion(row.version);
      const busy = await findInProgressOf(tx, row.id);
      if (busy) throw deploymentInProgress(busy);
      await markRoutingChanged(tx, { projectId: row.id });
      await keepHosts(tx, row, null, clock.now() + hostKeptMs);
      await publishDomainsOf(tx, ofProject(row.id));
      if (row.backlog === 0 && (await isSmall(tx, ofProject(row.id)))) {
        await endAlertsOf(tx, { ids, clock }, { projectId: row.id });
        await projects.deleteProject(tx, row);
      } else {
        await markProjectDeleted(tx, row, clock.now());
      }
      publish(tx, 'removals', null);
      const { name, slug, description, labels } = row;
      return { body: undefined, before: { name, slug, description, labels: JSON.parse(labels) } };
    }),
  ];
}

function refuseBoundToken(caller: Caller): void {
  if (caller.projectIds === null) return;
  throw new ApiError('insufficient_scope', 'A token bound to projects cannot create another one.', {
    details: [{ path: 'token.project_ids', message: 'must be null' }],
  });
}

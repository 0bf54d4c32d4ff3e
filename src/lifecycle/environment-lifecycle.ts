// Creating and deleting an environment spans features: its alert rules come with it; its alerts, routes and instances
// go with it.
import type { Quotas } from '../accounts/quotas.ts';
import { insertDefaultRules } from '../alerts/default-rules.ts';
import { endAlertsOf } from '../alerts/incidents.ts';
import { createEnvironment, deleteEnvironment } from '../contract/environments.ts';
import { ApiError, quotaExceeded } from '../contract/errors.ts';
import { isUniqueViolation } from '../db/database-errors.ts';
import { lockRow } from '../db/guarded.ts';
import { deploymentInProgress, findInProgress } from '../deployments/deployment-queries.ts';
import { changeEnvironment, newEnvironment } from '../environments/change-environment.ts';
import * as environments from '../environments/environment-queries.ts';
import { freeHost, keepHosts } from '../environments/environment-queries.ts';
import { storeVariables } from '../environments/revision-settings.ts';
import { type ServedRoute, serve } from '../http/api/served-route.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import type { Seal } from '../lib/seal.ts';
import { requireProject } from '../projects/project-queries.ts';
import type { Regions } from '../regions/regions.ts';
import { publish } from '../signals/signals.ts';
import { markRoutingChanged } from '../traffic/traffic-queries.ts';
import { isSmall, markEnvironmentDeleted, ofEnvironment, publishDomainsOf } from './removal.ts';

const maxEnvironments = 100;

interface EnvironmentLifecycleParts {
  ids: IdSource;
  clock: Clock;
  seal: Seal;
  quotas: Quotas;
  regions: Regions;
  urlOf(host: string): string;
  hostKeptMs?: number;
}

export function environmentLifecycleRoutes(parts: EnvironmentLifecycleParts): ServedRoute[] {
  const { ids, clock, seal, quotas, regions, urlOf, hostKeptMs = 0 } = parts;
  return [
    serve(createEnvironment, async (call, tx) => {
      const project = await requireProject(tx, call.caller, call.params.id);
      const { name, region, ...changes } = call.body;
      if (await environments.findEnvironment(tx, project.id, name)) throw environmentExists(name);
      await lockRow(tx, 'project', project.id);
      if ((await environments.countEnvironments(tx, project.id)) >= maxEnvironments) {
        throw quotaExceeded(`A project has at most ${maxEnvironments} environments.`, 'environments', maxEnvironments);
      }
      const host = await freeHost(tx, { ids, clock }, { accountId: project.account_id, slug: project.slug }, name);
      const created = newEnvironment(
        { projectId: project.id, name, region: regions.choose(region), host },
        clock.now(),
      );
      const { row, variables } = changeEnvironment(created, changes, {}, seal, clock.now());
      await quotas.within(tx, call.caller.accountId, ['environments', 'variables_bytes'], async () => {
        try {
          await environments.insertEnvironment(tx, row);
        } catch (error) {
          throw isUniqueViolation(error) ? environmentExists(name) : error;
        }
        if (variables) await storeVariables(tx, row, variables);
      });
      await insertDefaultRules(tx, { ids, clock }, { projectId: project.id, environment: name });
      return {
        body: environments.presentEnvironment(row, urlOf),
        version: row.version,
        location: `/projects/${project.id}/environments/${name}`,
      };
    }),

    serve(deleteEnvironment, async (call, tx) => {
      const row = await environments.requireEnvironment(tx, call.caller, call.params);
      call.expectVersion(row.version);
      const key = { projectId: row.project_id, environment: row.name };
      const busy = await findInProgress(tx, key);
      if (busy) throw deploymentInProgress(busy);
      const owner = { id: row.project_id, account_id: call.caller.accountId };
      await keepHosts(tx, owner, row.name, clock.now() + hostKeptMs);
      await publishDomainsOf(tx, ofEnvironment(row));
      if (await isSmall(tx, ofEnvironment(row))) {
        await endAlertsOf(tx, { ids, clock }, key);
        await environments.deleteEnvironment(tx, row);
      } else {
        await markEnvironmentDeleted(tx, row, clock.now());
      }
      await markRoutingChanged(tx, key);
      publish(tx, 'environments', key);
      publish(tx, 'removals', null);
      const { name, region, replicas } = row;
      return { body: undefined, before: { name, region, replicas } };
    }),
  ];
}

const environmentExists = (name: string) =>
  new ApiError('environment_exists', `The project has an environment ${name}.`, {
    details: [{ path: 'body.name', message: name }],
  });

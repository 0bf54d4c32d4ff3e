// Every route of the API.
import { auditRoutes } from '../audit/routes.ts';
import { getOpenApi } from '../contract/service.ts';
import { deploymentLogRoutes, type LogParts } from '../deployments/api/logs.ts';
import { deploymentRoutes } from '../deployments/api/routes.ts';
import { environmentRoutes } from '../environments/routes.ts';
import { type ServedRoute, serve } from '../http/api/route.ts';
import { openApiDocument } from '../http/reference/openapi.ts';
import { environmentLifecycleRoutes } from '../lifecycle/environments.ts';
import { projectLifecycleRoutes } from '../lifecycle/projects.ts';
import { projectRoutes } from '../projects/routes.ts';
import type { Regions } from '../regions/regions.ts';
import { regionRoutes } from '../regions/routes.ts';
import { registryRoutes } from '../registries/routes.ts';
import { tokenRoutes } from '../tokens/routes.ts';
import { version } from '../version.ts';
import type { Addresses } from './addresses.ts';
import type { Common } from './common.ts';

/** `more`: those of the parts that bring their own. */
export function apiRoutes(
  common: Common,
  regions: Regions,
  addresses: Addresses,
  maxProjects: number,
  storedLogs: LogParts['storedLogs'],
  more: { routes: ServedRoute[] }[],
): ServedRoute[] {
  const openApi = openApiDocument(version);
  const parts = { ...common, regions, urlOf: addresses.environmentUrl, maxProjects, storedLogs };
  return [
    ...projectRoutes(parts),
    ...projectLifecycleRoutes(parts),
    ...environmentRoutes(parts),
    ...environmentLifecycleRoutes(parts),
    ...deploymentRoutes(parts),
    ...deploymentLogRoutes(parts),
    ...more.flatMap(({ routes }) => routes),
    ...registryRoutes(parts),
    ...tokenRoutes(parts),
    ...regionRoutes(regions),
    ...auditRoutes(),
    serve(getOpenApi, async () => ({ body: openApi })),
  ];
}

import type { ServedRoute } from '../../http/api/route.ts';
import { deploymentRecordRoutes } from './deployments.ts';
import { logRoutes } from './logs.ts';
import type { DeploymentParts } from './parts.ts';
import { revisionRoutes } from './revisions.ts';
import { rolloutCommandRoutes } from './rollout-commands.ts';

export const deploymentRoutes = (parts: DeploymentParts): ServedRoute[] => [
  ...deploymentRecordRoutes(parts),
  ...rolloutCommandRoutes(parts),
  ...logRoutes(parts),
  ...revisionRoutes(parts),
];

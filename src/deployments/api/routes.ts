import type { ServedRoute } from '../../http/api/served-route.ts';
import { usageRoutes } from '../usage/routes.ts';
import type { CreateParts } from './create.ts';
import { deploymentRecordRoutes } from './deployments.ts';
import { instanceRoutes } from './instances.ts';
import { revisionRoutes } from './revisions.ts';
import { rolloutCommandRoutes } from './rollout-commands.ts';

export const deploymentRoutes = (parts: CreateParts): ServedRoute[] => [
  ...deploymentRecordRoutes(parts),
  ...rolloutCommandRoutes(parts),
  ...revisionRoutes(parts),
  ...instanceRoutes(parts),
  ...usageRoutes(parts),
];

// Reads that several pages share.
import type { Deployment, Environment } from '../../src/client/index.ts';
import { useRead } from './use-read.ts';

export const useEnvironment = (project: string, name: string) =>
  useRead<Environment>(`environment/${project}/${name}`, (client) => client.environments.get(project, name), {
    project,
    environment: name,
  });

/** No event announces new measurements. */
const canaryRefreshMs = 5000;

export const useDeployment = (project: string, id: string) =>
  useRead<Deployment>(`deployment/${id}`, (client) => client.deployments.get(project, id), {
    project,
    pollMs: (read) => (read.state === 'canary' ? canaryRefreshMs : null),
  });

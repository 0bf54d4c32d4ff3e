/** The environment that a deployment, a revision, an instance or a route belongs to. */
export interface EnvironmentKey {
  projectId: string;
  environment: string;
}

/** Unique among environments, for maps. */
export const keyText = ({ projectId, environment }: EnvironmentKey): string => `${projectId} ${environment}`;

export const keyOf = (row: { project_id: string; environment: string }): EnvironmentKey => ({
  projectId: row.project_id,
  environment: row.environment,
});

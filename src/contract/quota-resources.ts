// What has a quota. Apart from the shapes of the API, so that reading the settings loads no schemas.

/** What an account may have so much of, and no more; what each is, for the reference and the console. */
export const quotaResources = {
  projects: 'Projects.',
  environments: 'Environments of all projects.',
  instances: 'Replicas of all environments that run something. A rollout may run more for as long as it lasts.',
  memory_mb: 'Memory of these replicas, as `resources.memory_mb` says.',
  ports: 'Host ports of instances, those included that were freed a few minutes ago.',
  webhooks: 'Webhooks.',
  domains: 'Custom domains of all projects.',
  tokens: 'Tokens that are not revoked.',
  variables_bytes: 'Bytes of stored variables: those of each environment, and of revisions that can be rolled back to.',
  log_bytes: 'Bytes of compressed logs, counted every few minutes. Beyond it the oldest lines are deleted.',
  requests_per_minute: 'API requests over all tokens.',
} as const;

export type QuotaResource = keyof typeof quotaResources;
export const quotaNames = Object.keys(quotaResources) as QuotaResource[];

// One line of the route map: a host, and all that HAProxy has to know of its environment. Changing a share or the
// backends of an environment is changing this one value.
import { canaryLimit, canaryOffset } from '../balance.ts';
import type { EnvironmentRoutes } from '../table.ts';

/** Where each field stands in a value, counted from one as HAProxy does. */
export const fieldNumbers = {
  backend: 1,
  canaryBackend: 2,
  offset: 3,
  limit: 4,
  secure: 5,
  project: 6,
  environment: 7,
  revision: 8,
  canaryRevision: 9,
} as const;

type Field = keyof typeof fieldNumbers;
const fields = Object.keys(fieldNumbers) as Field[];

/** `limit` 0 means that there is no canary. */
export function routeValue(
  { project, environment, shares }: EnvironmentRoutes,
  secure: boolean,
  backendOf: (revision: number) => string,
): string {
  const [stable, canary] = shares;
  const values: Record<Field, string | number> = {
    backend: stable ? backendOf(stable.revision) : '-',
    canaryBackend: canary ? backendOf(canary.revision) : '-',
    offset: canary ? canaryOffset(canary.revision) : 0,
    limit: canary ? canaryLimit(canary.percent) : 0,
    secure: secure ? 1 : 0,
    project,
    environment,
    revision: stable?.revision ?? 0,
    canaryRevision: canary?.revision ?? 0,
  };
  return fields.map((name) => values[name]).join('|');
}

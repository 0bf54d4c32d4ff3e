// Creates and changes environments, without I/O. In a change, omitted fields stay, nested objects merge, null clears.
import { type EnvironmentChanges, environmentDefaults } from '../contract/environments.ts';
import { ApiError, quotaExceeded } from '../contract/errors.ts';
import type { Seal } from '../lib/seal.ts';
import { canaryPolicyOf, type EnvironmentRow } from './environment-queries.ts';
import { resourcesOf, sealVariables, type VariableSet } from './revision-settings.ts';

const maxVariables = 200;
/** Of all names and values together. Each revision that can be rolled back to has them too. */
const maxVariableBytes = 256 * 1024;

interface NewEnvironment {
  projectId: string;
  name: string;
  region: string;
  host: string;
}

const defaultTexts = {
  health_check: JSON.stringify(environmentDefaults.health_check),
  resources: JSON.stringify(environmentDefaults.resources),
  canary: JSON.stringify(environmentDefaults.canary),
};

export function newEnvironment({ projectId, name, region, host }: NewEnvironment, nowMs: number): EnvironmentRow {
  return {
    project_id: projectId,
    name,
    region,
    host,
    replicas: environmentDefaults.replicas,
    port: environmentDefaults.port,
    port_set: 0,
    variable_names: '[]',
    variables_sealed: null,
    ...defaultTexts,
    auto_rollback: environmentDefaults.auto_rollback ? 1 : 0,
    retention: environmentDefaults.retention,
    drain_s: environmentDefaults.drain_s,
    locked_reason: null,
    locked_at: null,
    next_revision: 1,
    health_state: 'idle',
    health_since: nowMs,
    health_reason: null,
    deleted_at: null,
    created_at: nowMs,
    updated_at: nowMs,
    version: 1,
  };
}

interface Changed {
  row: EnvironmentRow;
  /** To be stored after the row; null: its variables are as they were, or there are none. */
  variables: VariableSet | null;
}

/** `before`: the variables that the environment has, where they are changed. */
export function changeEnvironment(
  row: EnvironmentRow,
  changes: EnvironmentChanges,
  before: Record<string, string>,
  seal: Seal,
  nowMs: number,
): Changed {
  const canary = { ...canaryPolicyOf(row), ...changes.canary };
  refuseFallingSteps(canary.steps);
  const merged = changes.variables && mergeVariables(before, changes.variables);
  const variables = merged ? sealVariables(merged, row, seal) : null;
  const changed: EnvironmentRow = {
    ...row,
    replicas: changes.replicas ?? row.replicas,
    port: changes.port ?? row.port,
    port_set: changes.port === undefined ? row.port_set : 1,
    retention: changes.retention ?? row.retention,
    drain_s: changes.drain_s ?? row.drain_s,
    auto_rollback: changes.auto_rollback === undefined ? row.auto_rollback : changes.auto_rollback ? 1 : 0,
    health_check: JSON.stringify({ ...JSON.parse(row.health_check), ...changes.health_check }),
    resources: JSON.stringify({ ...resourcesOf(row), ...changes.resources }),
    canary: JSON.stringify(canary),
    ...(merged && {
      variable_names: JSON.stringify(Object.keys(merged)),
      variables_sealed: variables?.stored ?? null,
    }),
    ...lockFields(row, changes.locked, nowMs),
    updated_at: nowMs,
  };
  return { row: changed, variables };
}

function refuseFallingSteps(steps: number[]): void {
  if (steps.every((step, index) => index === 0 || step > steps[index - 1]!)) return;
  throw new ApiError('invalid_request', 'The steps of a canary must be in ascending order.', {
    details: [{ path: 'body.canary.steps', message: 'each step must be greater than the previous one' }],
  });
}

function lockFields(row: EnvironmentRow, locked: EnvironmentChanges['locked'], nowMs: number) {
  if (locked === undefined) return {};
  if (locked === null) return { locked_reason: null, locked_at: null };
  return { locked_reason: locked.reason, locked_at: row.locked_at ?? nowMs };
}

/** Sorted by name. */
function mergeVariables(
  before: Record<string, string>,
  changes: NonNullable<EnvironmentChanges['variables']>,
): Record<string, string> {
  const variables = new Map(Object.entries(before));
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) variables.delete(name);
    else variables.set(name, value);
  }
  if (variables.size > maxVariables) {
    throw quotaExceeded(`An environment has at most ${maxVariables} variables.`, 'body.variables', maxVariables);
  }
  const bytes = sizeOf(variables);
  // Those of before there was a limit may stay, and become smaller.
  if (bytes > maxVariableBytes && bytes > sizeOf(new Map(Object.entries(before)))) {
    const message = `The variables of an environment have at most ${maxVariableBytes} bytes, names included; these have ${bytes}.`;
    throw quotaExceeded(message, 'variables_bytes', maxVariableBytes);
  }
  return Object.fromEntries([...variables].sort(([a], [b]) => (a < b ? -1 : 1)));
}

const sizeOf = (variables: ReadonlyMap<string, string>): number =>
  [...variables].reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value), 0);

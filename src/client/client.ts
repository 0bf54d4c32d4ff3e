// Builds the client from the table of operations.
import { eventOperations } from './event-operations.ts';
import { Listing, type Page } from './listing.ts';
import type { Kind, Operation } from './operation.ts';
import { operations } from './operations.ts';
import type { CallOptions, ClientOptions, QueryValues, StreamOptions } from './request.ts';
import { Follower } from './stream.ts';
import { Transport } from './transport.ts';
import type { Deployment } from './types.ts';
import { type WaitOptions, waitFor } from './wait.ts';

type Operations = typeof operations & typeof eventOperations;
type Resources = {
  readonly [G in keyof Operations]: {
    readonly [M in keyof Operations[G]]: Operations[G][M] extends Operation<infer F> ? F : never;
  };
};

export interface Sluice extends Resources {
  /**
   * Resolves with the deployment once it has ended, successfully or not, or once `until` returns true. Keeps waiting while
   * the service restarts. Fails with the code `timeout` after `timeoutMs`.
   */
  waitFor(projectId: string, deploymentId: string, options?: WaitOptions): Promise<Deployment>;
}

/** The arguments that each kind takes after the path parameters, in order. */
const argumentsOf: Record<Kind, readonly ('body' | 'query' | 'options')[]> = {
  list: ['query', 'options'],
  get: ['options'],
  find: ['query', 'options'],
  create: ['body', 'options'],
  post: ['body', 'query', 'options'],
  command: ['options'],
  update: ['body', 'options'],
  delete: ['options'],
  deleteWith: ['query', 'options'],
  stream: ['query', 'options'],
};

const methodOf = {
  list: 'GET',
  get: 'GET',
  find: 'GET',
  create: 'POST',
  post: 'POST',
  command: 'POST',
  update: 'PATCH',
  delete: 'DELETE',
  deleteWith: 'DELETE',
  stream: 'GET',
} as const satisfies Record<Kind, string>;

/** An empty id would turn the path into that of the list, and dots into another path. */
function encode(value: unknown, name: string): string {
  if (typeof value === 'string' && value !== '' && value !== '.' && value !== '..') return encodeURIComponent(value);
  throw new TypeError(`{${name}} of the path cannot be ${JSON.stringify(value) ?? 'left out'}`);
}

interface Given {
  path: string;
  body?: unknown;
  query?: QueryValues;
  options?: CallOptions & StreamOptions;
}

function readArguments({ kind, path }: Operation<unknown>, args: readonly unknown[]): Given {
  const rest = [...args];
  const given: Given = { path: path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encode(rest.shift(), name)) };
  for (const name of argumentsOf[kind]) Object.assign(given, { [name]: rest.shift() });
  return given;
}

function methodFor(transport: Transport, operation: Operation<unknown>): (...args: unknown[]) => unknown {
  const method = methodOf[operation.kind];
  if (operation.kind === 'stream') {
    return (...args) => {
      const { path, query = {}, options = {} } = readArguments(operation, args);
      return new Follower(transport, path, query, options).follow();
    };
  }
  if (operation.kind === 'list') {
    return (...args) => {
      const { path, query = {}, options } = readArguments(operation, args);
      const read = (page: QueryValues) => transport.send({ method, path, query: { ...query, ...page }, options });
      return new Listing(read as () => Promise<Page<unknown>>, query);
    };
  }
  return async (...args) => transport.send({ method, ...readArguments(operation, args) });
}

export function createClient(options: ClientOptions): Sluice {
  const transport = new Transport(options);
  const resources = Object.fromEntries(
    Object.entries({ ...operations, ...eventOperations }).map(([name, group]) => [
      name,
      Object.fromEntries(Object.entries(group).map(([verb, each]) => [verb, methodFor(transport, each)])),
    ]),
  ) as unknown as Resources;
  return {
    ...resources,
    waitFor: (projectId, deploymentId, wait = {}) =>
      waitFor(deploymentId, (signal) => resources.deployments.get(projectId, deploymentId, { signal }), wait),
  };
}

// Builds the client from the table of operations, and waits for deployments.
import type { QueryOf } from '../contract/declare.ts';
import type * as events from '../contract/events.ts';
import { SluiceError } from './error.ts';
import { get, list } from './method.ts';
import { type Kind, Listing, type Operation, operation, type Page } from './operation.ts';
import { operations } from './operations.ts';
import type { CallOptions, ClientOptions, QueryValues, StreamOptions } from './request.ts';
import { pause } from './retry.ts';
import { Follower } from './stream.ts';
import { Transport } from './transport.ts';
import type { ChangeNotice, Deployment, SluiceEvent } from './types.ts';

type Followed<Q> = Q extends { changes: 'true' } ? SluiceEvent | ChangeNotice : SluiceEvent;
type Follow<Query> = <const Q extends Query | undefined = undefined>(
  query?: Q,
  options?: StreamOptions,
) => AsyncIterable<Followed<Q>>;

/** Not among the other operations, because the type of an event is built from the records that those return. */
const eventOperations = {
  events: {
    list: list<typeof events.listEvents, SluiceEvent>('/events'),
    get: get<typeof events.getEvent, SluiceEvent>('/events/{evt}'),
    stream: operation<Follow<QueryOf<typeof events.streamEvents>>>('stream', '/events/stream'),
  },
};

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

export interface WaitOptions {
  /** Resolve as soon as this returns true; default: when the deployment has ended, successfully or not. */
  until?: (deployment: Deployment) => boolean;
  /** Called with the first response and after each change. */
  onChange?: (deployment: Deployment) => void;
  signal?: AbortSignal;
  /** Default: no limit. */
  timeoutMs?: number;
  /** Time between two requests; default 1000. */
  intervalMs?: number;
}

type Read = (signal: AbortSignal) => Promise<Deployment>;

/** How long the service may be unreachable before waiting fails. */
const maxAwayMs = 120_000;

const isAway = (error: unknown): boolean =>
  error instanceof SluiceError &&
  (error.code === 'network' || error.code === 'timeout' || error.status === 429 || error.status >= 500);

/** Polls the deployment, also while the service restarts. */
async function waitFor(id: string, read: Read, options: WaitOptions): Promise<Deployment> {
  const { signal, timeoutMs } = options;
  const deadline = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs);
  const seen: Seen = { state: '', text: '' };
  try {
    const signals = [signal, deadline].filter((each) => each !== undefined);
    return await pollUntil(read, options, seen, AbortSignal.any(signals));
  } catch (error) {
    if (!deadline?.aborted || signal?.aborted) throw error;
    const last = seen.state === '' ? 'no answer about' : `still ${seen.state}:`;
    const message = `${last} deployment ${id} after ${timeoutMs} ms`;
    throw new SluiceError({ code: 'timeout', message, cause: error });
  }
}

interface Seen {
  state: string;
  text: string;
}

async function pollUntil(read: Read, options: WaitOptions, seen: Seen, signal: AbortSignal): Promise<Deployment> {
  const { until = () => false, onChange, intervalMs = 1000 } = options;
  let answeredAt = Date.now();
  for (;;) {
    const deployment = await read(signal).catch((error) => {
      if (isAway(error) && Date.now() - answeredAt < maxAwayMs) return null;
      throw error;
    });
    if (deployment !== null) {
      answeredAt = Date.now();
      const text = JSON.stringify(deployment);
      if (text !== seen.text) onChange?.(deployment);
      Object.assign(seen, { state: deployment.state, text });
      if (deployment.finished_at !== null || until(deployment)) return deployment;
    }
    await pause(intervalMs, signal);
  }
}

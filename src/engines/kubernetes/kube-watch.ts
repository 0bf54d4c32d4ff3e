// Lists the objects of one kind and follows their changes, for as long as it is wanted:
//
//   list ──► watch ──► (time is up, connection lost, silence) ──► watch again from the last version seen
//              └─────► (410: the server has forgotten that version) ──► list again
//
// Bookmarks keep the last version young, so that a watch of objects that seldom change seldom has to list again. A server
// sends one a minute or so: a connection that is silent for longer than that is taken for dead.
import {
  createBackoff,
  isStatus,
  type KubeClient,
  KubeError,
  type KubeStatus,
  linesOf,
  pause,
  type Query,
} from './kube-client.ts';
import type { KubeObject, ObjectList } from './kube-objects.ts';

export interface WatchTimes {
  /** The server ends a watch after this, and another follows: what it grants may have changed. */
  watchS: number;
  /** Without a line for this long, a connection is dead. */
  silenceMs: number;
  firstWaitMs: number;
  longestWaitMs: number;
}

const defaultWatchTimes: WatchTimes = {
  watchS: 300,
  silenceMs: 100_000,
  firstWaitMs: 200,
  longestWaitMs: 10_000,
};

interface Watched<T> {
  path: string;
  labelSelector: string;
  /** All there are, after every list. */
  onList(objects: T[]): void;
  onChange(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T): void;
  /** The connection is lost; what was seen last may be outdated until it is back. */
  onLost(error: unknown): void;
  /** A watch ended, and another is about to begin. */
  onEnd(): void;
  /** A watch is under way, from where the last one was. */
  onBegin(): void;
}

interface WatchEvent<T> {
  type: string;
  object: T & KubeStatus & { code?: number };
}

const pageSize = 500;
const maxLineBytes = 8 * 1024 * 1024;

/** The server no longer has the changes since the version that was asked for. */
const isExpired = (error: unknown): boolean =>
  isStatus(error, 410) || (error instanceof KubeError && error.reason === 'Expired');

/** Returns what ends it. */
function listAndWatch<T extends KubeObject>(
  client: KubeClient,
  watched: Watched<T>,
  times: WatchTimes = defaultWatchTimes,
): () => void {
  const ending = new AbortController();
  const ended = AbortSignal.any([ending.signal, client.closing]);
  const waits = createBackoff(times.firstWaitMs, times.longestWaitMs);
  let version: string | null = null;

  const run = async () => {
    while (!ended.aborted) {
      try {
        if (version === null) {
          const { objects, at } = await listAll<T>(client, watched);
          version = at;
          if (ended.aborted) return;
          watched.onList(objects);
        }
        const began = performance.now();
        await follow();
        // One that ends at once, again and again, must not be asked as fast as the network allows.
        if (performance.now() - began > times.firstWaitMs) waits.reset();
        else await pause(waits.next(), ended);
      } catch (error) {
        if (ended.aborted) return;
        if (isExpired(error)) version = null;
        watched.onLost(error);
        await pause(waits.next(error instanceof KubeError ? (error.retryAfterMs ?? 0) : 0), ended);
      }
    }
  };

  const follow = async () => {
    const quiet = new AbortController();
    const timer = setTimeout(() => quiet.abort(new Error('the watch is silent')), times.silenceMs);
    try {
      const query: Query = {
        watch: true,
        allowWatchBookmarks: true,
        labelSelector: watched.labelSelector,
        resourceVersion: version!,
        timeoutSeconds: times.watchS,
      };
      const stream = await client.stream(watched.path, query, AbortSignal.any([ended, quiet.signal]));
      watched.onBegin();
      for await (const line of linesOf(stream, maxLineBytes)) {
        timer.refresh();
        take(JSON.parse(line.toString('utf8')) as WatchEvent<T>);
      }
    } finally {
      clearTimeout(timer);
      watched.onEnd();
    }
  };

  const take = ({ type, object }: WatchEvent<T>) => {
    if (type === 'ERROR') throw new KubeError(object.code ?? 500, object, null);
    version = object.metadata.resourceVersion ?? version;
    waits.reset();
    if (type !== 'ADDED' && type !== 'MODIFIED' && type !== 'DELETED') return;
    watched.onChange(type, slim(object));
  };

  void run();
  return () => ending.abort();
}

/** In pages, so that no answer is as large as the cluster. */
export async function listAll<T extends KubeObject>(
  client: KubeClient,
  { path, labelSelector }: Pick<Watched<T>, 'path' | 'labelSelector'>,
): Promise<{ objects: T[]; at: string }> {
  const objects: T[] = [];
  let next: string | undefined;
  let at = '0';
  do {
    const query: Query = { labelSelector, limit: pageSize, continue: next };
    const page = await client.request<ObjectList<T>>({ path, query });
    for (const object of page.items) objects.push(slim(object));
    next = page.metadata.continue || undefined;
    at = page.metadata.resourceVersion ?? at;
  } while (next !== undefined);
  return { objects, at };
}

/** Who changed which field is half of an object, and nothing here reads it. */
function slim<T extends KubeObject>(object: T): T {
  delete object.metadata.managedFields;
  return object;
}

/** The objects of one kind, kept current by a watch. */
export interface Cache<T extends KubeObject> {
  /** Whether there has been a list, and a watch is under way. */
  isCurrent(): boolean;
  /** All objects, as last seen; null: it is not current. */
  all(): T[] | null;
  find(namespace: string, name: string): T | undefined;
  /** Resolves when `holds` does, after any change; false: not within the time, or not before stop(). */
  until(holds: () => boolean, timeoutMs: number): Promise<boolean>;
  stop(): void;
}

interface CacheOptions<T> {
  path: string;
  labelSelector: string;
  /** Called after the change is in the cache. null: after a list, or the loss of the connection. */
  onChange(object: T | null, before: T | undefined): void;
  onLost(error: unknown): void;
  times?: WatchTimes | undefined;
}

const keyOf = ({ metadata: { namespace = '', name } }: KubeObject): string => `${namespace}/${name}`;

export function watchedCache<T extends KubeObject>(client: KubeClient, options: CacheOptions<T>): Cache<T> {
  let objects = new Map<string, T>();
  let isListed = false;
  let isWatching = false;
  let isLost = false;
  const waiting = new Map<() => void, () => void>();
  const changed = (object: T | null, before: T | undefined) => {
    options.onChange(object, before);
    for (const check of [...waiting.keys()]) check();
  };
  const stopWatching = listAndWatch<T>(
    client,
    {
      path: options.path,
      labelSelector: options.labelSelector,
      onList(found) {
        objects = new Map(found.map((object) => [keyOf(object), object]));
        isListed = true;
        changed(null, undefined);
      },
      onChange(type, object) {
        const key = keyOf(object);
        const before = objects.get(key);
        if (type === 'DELETED') objects.delete(key);
        else objects.set(key, object);
        changed(object, before);
      },
      onLost(error) {
        isLost = true;
        options.onLost(error);
      },
      onEnd() {
        isWatching = false;
      },
      onBegin() {
        isWatching = true;
        const wasLost = isLost;
        isLost = false;
        if (wasLost) changed(null, undefined);
      },
    },
    options.times ?? defaultWatchTimes,
  );
  const isCurrent = () => isListed && isWatching;
  return {
    isCurrent,
    all: () => (isCurrent() ? [...objects.values()] : null),
    find: (namespace, name) => objects.get(`${namespace}/${name}`),
    until: (holds, timeoutMs) =>
      new Promise((resolve) => {
        const check = () => {
          if (holds()) end(true);
        };
        const end = (held: boolean) => {
          clearTimeout(timer);
          waiting.delete(check);
          resolve(held);
        };
        const timer = setTimeout(() => end(false), timeoutMs);
        waiting.set(check, () => end(false));
        check();
      }),
    stop() {
      stopWatching();
      for (const giveUp of [...waiting.values()]) giveUp();
    },
  };
}

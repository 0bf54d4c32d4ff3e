// The objects of one kind, as a watch keeps them.
import type { KubeClient } from './client.ts';
import type { KubeObject } from './objects.ts';
import { defaultWatchTimes, listAndWatch, type WatchTimes } from './watch.ts';

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

// How components read from the service. The key names what is read.
import { useCallback, useEffect, useSyncExternalStore } from 'react';
import type { ReadOptions, Snapshot } from './cached-read.ts';
import { cachedRead, snapshotOf } from './read-cache.ts';
import { type Client, useSignedIn } from './session.ts';

export function useRead<T>(
  key: string,
  read: (client: Client, pageCount: number) => Promise<T>,
  options: ReadOptions<T> = {},
): Snapshot<T> {
  const { client } = useSignedIn();
  // Before the subscription, which starts the first read. After every render: the functions see the latest props.
  useEffect(() => cachedRead<T>(key).configure((pageCount) => read(client, pageCount), options));
  const subscribe = useCallback((listener: () => void) => cachedRead<T>(key).subscribe(listener), [key]);
  return useSyncExternalStore(subscribe, () => snapshotOf<T>(key));
}

interface Page<T> {
  data: T[];
  page: { next: string | null };
}

interface ListSnapshot<T> extends Snapshot<T[]> {
  hasMore: boolean;
  loadMore(): void;
}

const pageSize = 50;

/** A list, as many pages of it as were loaded; all of them are read again when something changes. */
export function useList<T>(
  key: string,
  readPage: (client: Client, page: { limit: number; cursor?: string }) => Promise<Page<T>>,
  { pollMs, ...about }: ReadOptions<T[]> = {},
): ListSnapshot<T> {
  const readPages = async (client: Client, pageCount: number) => {
    const items: T[] = [];
    let cursor: string | null = null;
    for (let count = pageCount; count > 0; count--) {
      const page: Page<T> = await readPage(client, cursor === null ? { limit: pageSize } : { limit: pageSize, cursor });
      items.push(...page.data);
      cursor = page.page.next;
      if (cursor === null) break;
    }
    return { items, hasMore: cursor !== null };
  };
  const { data, error, isReading } = useRead(key, readPages, {
    ...about,
    ...(pollMs && { pollMs: ({ items }) => pollMs(items) }),
  });
  return {
    data: data?.items,
    error,
    isReading,
    hasMore: data?.hasMore ?? false,
    loadMore: () => cachedRead(key).readNextPage(),
  };
}

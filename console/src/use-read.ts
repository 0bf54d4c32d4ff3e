// How components read from the service. The key names what is read.
import { useCallback, useEffect, useRef, useSyncExternalStore } from 'react';
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

export const isLoading = ({ data, error }: Snapshot<unknown>): boolean => data === undefined && error === undefined;

interface Page<T> {
  data: T[];
  page: { next: string | null };
}

interface ListSnapshot<T> extends Snapshot<T[]> {
  hasMore: boolean;
  loadMore(): void;
}

const defaultPageSize = 50;
/** Lists of many pages are not read again with every change, but at most so often for each page. */
const gapPerPageMs = 1000;

/** A list, as many pages of it as were loaded; all of them are read again when something changes. */
export function useList<T>(
  key: string,
  readPage: (client: Client, page: { limit: number; cursor?: string }) => Promise<Page<T>>,
  { pollMs, pageSize = defaultPageSize, ...about }: Omit<ReadOptions<T[]>, 'minGapMs'> & { pageSize?: number } = {},
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
    minGapMs: ({ items }) => Math.max(0, Math.ceil(items.length / pageSize) - 1) * gapPerPageMs,
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

/** What was shown last, while something else is read in its place: a list that is searched as one types does not flicker. */
export function useSteady<T>(snapshot: T & { data: unknown }): T {
  const last = useRef(snapshot);
  if (snapshot.data !== undefined) last.current = snapshot;
  return snapshot.data === undefined && last.current.data !== undefined
    ? { ...last.current, isReading: true }
    : snapshot;
}

// Components read through here. Everything read is kept by a key, so that two parts of a page that show the same thing
// read it once, and a page that was seen before is there at once.
import { useMemo, useSyncExternalStore } from 'react';
import { type About, Reading, type Snapshot } from './reading.ts';
import { type Client, session, useSignedIn } from './session.ts';

const readings = new Map<string, Reading<unknown>>();
session.watch(() => session.get().status === 'out' && readings.clear());
document.addEventListener('visibilitychange', () => touch());

const keptReadings = 100;

/** Pages of long ago are read anew. */
function forgetOld(): void {
  for (const [key, reading] of readings) {
    if (readings.size <= keptReadings) return;
    if (!reading.isShown) readings.delete(key);
  }
}

export function useRead<T>(key: string, read: (client: Client) => Promise<T>, about: About = {}): Snapshot<T> {
  const { client } = useSignedIn();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key names what is read, also for the closures
  const reading = useMemo(() => {
    const known = readings.get(key) as Reading<T> | undefined;
    const found = known ?? new Reading<T>(() => read(client), about);
    if (!known) {
      forgetOld();
      readings.set(key, found as Reading<unknown>);
    }
    return found;
  }, [key, client]);
  reading.read = () => read(client);
  reading.about = about;
  return useSyncExternalStore(reading.watch, () => reading.snapshot);
}

interface Paged<T> {
  data: T[];
  page: { next: string | null; has_more: boolean };
}

export interface ListSnapshot<T> extends Snapshot<T[]> {
  hasMore: boolean;
  more(): void;
}

const pageSize = 50;
const pagesShown = new Map<string, number>();

/** A list, as many pages of it as were asked for; all of them are read again when something changes. */
export function useList<T>(
  key: string,
  read: (client: Client, page: { limit: number; cursor?: string }) => Promise<Paged<T>>,
  about: About = {},
): ListSnapshot<T> {
  const readPages = async (client: Client) => {
    const items: T[] = [];
    let cursor: string | null = null;
    for (let count = pagesShown.get(key) ?? 1; count > 0; count--) {
      const page: Paged<T> = await read(client, cursor === null ? { limit: pageSize } : { limit: pageSize, cursor });
      items.push(...page.data);
      cursor = page.page.next;
      if (cursor === null) break;
    }
    return { items, hasMore: cursor !== null };
  };
  const everyMs = about.everyMs && ((data: unknown) => about.everyMs!((data as { items: T[] }).items));
  const { data, error, reading } = useRead(key, readPages, everyMs ? { ...about, everyMs } : about);
  return {
    data: data?.items,
    error,
    reading,
    hasMore: data?.hasMore ?? false,
    more() {
      pagesShown.set(key, (pagesShown.get(key) ?? 1) + 1);
      readings.get(key)?.touch(0);
    },
  };
}

/** Something of that project has changed; without one, anything may have. */
export function touch(project?: string, environment?: string | null): void {
  for (const reading of readings.values()) {
    const { about } = reading;
    const concerns =
      project === undefined ||
      about.project === '*' ||
      (about.project === project &&
        (about.environment === undefined || environment == null || about.environment === environment));
    if (concerns) reading.touch();
  }
}

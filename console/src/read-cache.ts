// All reads of this session, by key: two parts of a page that show the same thing read it once, and a page that was open
// before shows its data at once. Entries are created by effects and events, never during a render.
import { CachedRead, emptySnapshot, type Snapshot } from './cached-read.ts';
import { session } from './session.ts';

const maxEntries = 100;
const entries = new Map<string, CachedRead<unknown>>();

session.subscribe(() => session.get().status === 'out' && entries.clear());
document.addEventListener('visibilitychange', () => invalidate());

export function snapshotOf<T>(key: string): Snapshot<T> {
  return (entries.get(key)?.snapshot ?? emptySnapshot) as Snapshot<T>;
}

/** The entry with that key; created if there is none. */
export function cachedRead<T>(key: string): CachedRead<T> {
  const found = entries.get(key) ?? new CachedRead<unknown>();
  if (!entries.has(key)) {
    evictOldest();
    entries.set(key, found);
  }
  return found as CachedRead<T>;
}

function evictOldest(): void {
  for (const [key, entry] of entries) {
    if (entries.size <= maxEntries) return;
    if (!entry.isShown) entries.delete(key);
  }
}

/** Something in this project has changed; without a project, anything may have. */
export function invalidate(project?: string, environment?: string | null): void {
  for (const entry of entries.values()) {
    const { options } = entry;
    const isConcerned =
      project === undefined ||
      options.project === '*' ||
      (options.project === project &&
        (options.environment === undefined || environment == null || options.environment === environment));
    if (isConcerned) entry.invalidate();
  }
}

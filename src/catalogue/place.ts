// Where a catalogue lives: the site, which is all that readers see, and its state beside it. Both must be on one file
// system, because finished files get their place in the site by a link.
//
//   catalogue/                  the site
//   catalogue.state/            ledger.jsonl, lock, sources.json, work/<key>/
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { CatalogueError } from './fault.ts';

export interface Place {
  site: string;
  state: string;
  ledger: string;
  work: string;
  sources: string;
}

export function placeOf(site: string): Place {
  const root = resolve(site);
  const state = `${root}.state`;
  return {
    site: root,
    state,
    ledger: join(state, 'ledger.jsonl'),
    work: join(state, 'work'),
    sources: join(state, 'sources.json'),
  };
}

/**
 * Runs while nobody else builds or withdraws in this place. The lock is the operating system's, taken through SQLite: it
 * cannot outlive the process, so there is no stale lock to clear after a crash.
 */
export async function whileLocked<T>(place: Place, work: () => Promise<T>): Promise<T> {
  mkdirSync(place.state, { recursive: true });
  const lock = new DatabaseSync(join(place.state, 'lock'));
  try {
    try {
      lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    } catch (error) {
      if (!(error as Error).message.includes('locked')) throw error;
      throw new CatalogueError(`another command is at work on ${place.site}; wait until it has ended`);
    }
    return await work();
  } finally {
    lock.close();
  }
}

// Where a catalogue lives: the site, which is all that readers see, and its state beside it. Both must be on one file
// system, because finished files are linked from staging into the site.
//
//   catalogue/                  the site
//   catalogue.state/            ledger.jsonl, lock, sources.json, last-build.json, work/<key>/ (staging)
import { join, resolve } from 'node:path';

export const DOCUMENT_PATH = 'api/streams.json';
export const SUMS_PATH = 'media/SHA256SUMS';
export const TOMBSTONES_PATH = 'api/withdrawn.json';
export const HEALTH_PATH = 'health.txt';
export const HEALTH_BYTES = 'ok\n';

export interface SitePaths {
  site: string;
  state: string;
  ledger: string;
  /** Encoded streams that are not published yet. */
  staging: string;
  sources: string;
  lastBuild: string;
}

export function sitePathsOf(site: string): SitePaths {
  const root = resolve(site);
  const state = `${root}.state`;
  return {
    site: root,
    state,
    ledger: join(state, 'ledger.jsonl'),
    // On disk the name stays, so that an upgrade finds what an interrupted build left.
    staging: join(state, 'work'),
    sources: join(state, 'sources.json'),
    lastBuild: join(state, 'last-build.json'),
  };
}

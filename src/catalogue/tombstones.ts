// Tombstones: the ids that were withdrawn, inside the site as well as in the ledger. A ledger that is restored from an older
// copy has forgotten withdrawals; the site that it is put beside has not, and an id is withdrawn if either says so.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CatalogueError, codeOf } from './catalogue-error.ts';
import type { LedgerLine, StreamRecord } from './ledger.ts';
import { type SitePaths, TOMBSTONES_PATH } from './site-paths.ts';

export interface Tombstone {
  id: string;
  /** When it was withdrawn, ISO 8601. */
  at: string;
  /** Whether its files were removed too. */
  purged: boolean;
}

export async function readTombstones({ site }: SitePaths): Promise<Tombstone[]> {
  try {
    return (JSON.parse(await readFile(join(site, TOMBSTONES_PATH), 'utf8')) as { withdrawn: Tombstone[] }).withdrawn;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    if (error instanceof SyntaxError) throw new CatalogueError(`${TOMBSTONES_PATH} is damaged; restore it from a copy`);
    throw error;
  }
}

/** The lines that a ledger lacks: what the site says of withdrawals, and the ledger does not. */
export function forgottenLines(records: Map<string, StreamRecord>, tombstones: Tombstone[]): LedgerLine[] {
  return tombstones.flatMap(({ id, at, purged }): LedgerLine[] => {
    const record = records.get(id);
    return [
      ...(record?.withdrawn ? [] : [{ type: 'withdraw' as const, at, id }]),
      ...(purged && !record?.purged ? [{ type: 'purge' as const, at, id }] : []),
    ];
  });
}

/** Every withdrawal that the ledger or the site knows, in the order of their ids. */
export function allTombstones(lines: LedgerLine[], tombstones: Tombstone[]): Tombstone[] {
  const all = new Map(tombstones.map((each) => [each.id, { ...each }]));
  for (const line of lines) {
    if (line.type === 'publish') continue;
    const known = all.get(line.id) ?? { id: line.id, at: line.at, purged: false };
    all.set(line.id, { ...known, purged: known.purged || line.type === 'purge' });
  }
  return [...all.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

export const encodeTombstones = (withdrawn: Tombstone[]) => `${JSON.stringify({ withdrawn }, null, 2)}\n`;

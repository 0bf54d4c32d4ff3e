// The ledger travels with the site, so that a push knows what the store was told before. A ledger only ever grows: the one
// in the store must be the beginning of ours, or ours is a copy that missed something, such as the withdrawal of an id.
import type { CatalogueDocument } from '../document.ts';
import type { LedgerLine } from '../ledger.ts';

const MOST_NAMED = 10;

const nameOf: Record<LedgerLine['type'], string> = {
  publish: 'a publish of',
  withdraw: 'the withdrawal of',
  purge: 'the purge of',
};

function describe(text: string): string {
  try {
    const { type, id, at } = JSON.parse(text) as LedgerLine;
    return `${nameOf[type]} ${id} (${at})`;
  } catch {
    return 'a line that cannot be read';
  }
}

const linesOf = (text: string) => text.split('\n').slice(0, -1);

/** Why a copy with this ledger must not be pushed; empty where it may. Both are the texts of ledgers. */
export function ledgerFaults(local: string, stored: string): string[] {
  if (local.startsWith(stored)) return [];
  const ours = new Set(linesOf(local));
  const missing = linesOf(stored).filter((line) => !ours.has(line));
  const named = missing.slice(0, MOST_NAMED).map((line) => `this copy lacks ${describe(line)}`);
  const more = missing.length > MOST_NAMED ? [`and ${missing.length - MOST_NAMED} more`] : [];
  const why = stored.startsWith(local)
    ? 'this copy of the catalogue is older than the store; bring the newer site and its state here first'
    : 'this copy of the catalogue and the store have different histories; push from the copy that the store came from';
  return [why, ...named, ...more];
}

/** For a store that was filled before ledgers were pushed: ours has to know at least every stream that is there. */
export function documentFaultsAgainst(ids: Set<string>, stored: CatalogueDocument): string[] {
  return stored.streams
    .filter(({ id }) => !ids.has(id))
    .map(({ id }) => `stream ${id} is in the store and not in the ledger of this copy; restore the ledger`);
}

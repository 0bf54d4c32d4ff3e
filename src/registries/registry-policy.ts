// Which registries a tenant's image may name. Where there is more than one account, those at loopback and private addresses
// are not asked unless the operator lists them: a tenant who names one would learn from the answer what runs inside.
import { isIP } from 'node:net';
import { parseImage } from '../contract/references.ts';
import type { Db } from '../db/database.ts';
import { mayConnect } from '../lib/address.ts';
import type { Lookup } from '../lib/dns-lookup.ts';

interface PolicyParts {
  db: Db;
  lookup: Lookup;
  /** Registries that may be asked wherever they are, as image references name them. */
  allowed: readonly string[];
}

const onlyPublic = { allowLoopback: false, allowed: [] };

/** Gives why the registry of an image may not be asked; null: it may. */
export function registryPolicy({ db, lookup, allowed }: PolicyParts) {
  return async (image: string): Promise<string | null> => {
    const registry = parseImage(image)?.registry;
    if (registry === undefined || allowed.includes(registry) || !(await hasSeveralAccounts(db))) return null;
    const bare = new URL(`http://${registry}`).hostname.replace(/^\[(.*)\]$/, '$1');
    // Where DNS does not say, the engine finds out by itself.
    const found = isIP(bare) === 0 ? await lookup(bare).catch(() => []) : [{ address: bare }];
    if (found.every(({ address }) => mayConnect(address, onlyPublic))) return null;
    return `The registry ${registry} is at an address that is not public, and the operator has not allowed it (SLUICE_REGISTRY_ALLOW)`;
  };
}

async function hasSeveralAccounts(db: Db): Promise<boolean> {
  return (await db.selectFrom('account').select('id').limit(2).execute()).length > 1;
}

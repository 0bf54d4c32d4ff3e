// Taking a hostname. Who has only claimed it gives way to who proves to own it: a name cannot be kept from its owner.
import { deleteDomainRules } from '../alerts/defaults.ts';
import { ApiError } from '../contract/errors.ts';
import type { Db } from '../db/database.ts';
import { isUniqueViolation } from '../db/database-errors.ts';
import { publish } from '../signals/signals.ts';
import { recordToAdd } from './ownership.ts';
import { type DomainRow, deleteDomain, findDomainOf, insertDomain } from './queries.ts';
import { isProvedByRecord, type ResolveTxt } from './txt-proof.ts';

/** Remembers from before a request's transaction, which must not wait for DNS, whether the record was found. */
export function proofByRecord({ resolveTxt }: { resolveTxt: ResolveTxt }) {
  const found = new WeakSet<object>();
  return {
    async look(call: object, domain: Pick<DomainRow, 'hostname' | 'account_id'>): Promise<boolean> {
      const isFound = await isProvedByRecord(domain, resolveTxt);
      if (isFound) found.add(call);
      return isFound;
    },
    has: (call: object): boolean => found.has(call),
  };
}

export async function takeHostname(tx: Db, row: DomainRow): Promise<void> {
  const holder = await findDomainOf(tx, row.hostname);
  if (holder) {
    if (holder.proof !== null || row.proof === null || holder.account_id === row.account_id) throw taken(row, holder);
    await deleteDomain(tx, holder);
    const { project_id: projectId, environment, hostname, account_id: accountId } = holder;
    await deleteDomainRules(tx, { projectId, environment, hostname });
    publish(tx, 'changes', { accountId, projectId, environment });
  }
  try {
    await insertDomain(tx, row);
  } catch (error) {
    throw isUniqueViolation(error) ? taken(row, null) : error;
  }
}

/** Does not say by whom. The owner of a name that another account has only claimed is told how to get it. */
function taken(row: DomainRow, holder: DomainRow | null): ApiError {
  const isOnlyClaimed = holder?.proof === null && holder.account_id !== row.account_id;
  const details = [{ path: 'body.hostname', message: row.hostname }];
  if (isOnlyClaimed) details.push({ path: 'body.hostname', message: `if it is yours, add ${recordToAdd(row)}` });
  return new ApiError('domain_taken', 'This hostname is already in use.', { details });
}

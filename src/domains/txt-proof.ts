// Looks for the TXT record by which the owner of a name says which account may use it.
import { Resolver } from 'node:dns/promises';
import { txtRecordOf } from './ownership.ts';

/** Each record as the strings it is made of. */
export type ResolveTxt = (name: string) => Promise<string[][]>;

export const systemResolveTxt: ResolveTxt = (name) => new Resolver({ timeout: 2000, tries: 2 }).resolveTxt(name);

/** False also while DNS does not answer: nothing is proved then. */
export async function isProvedByRecord(
  domain: { hostname: string; account_id: string },
  resolveTxt: ResolveTxt,
): Promise<boolean> {
  const { name, value } = txtRecordOf(domain);
  try {
    return (await resolveTxt(name)).some((parts) => parts.join('').trim() === value);
  } catch {
    return false;
  }
}

// Looks for the TXT record by which the owner of a name says which account may use it.
import { Resolver } from 'node:dns/promises';
import { txtRecordOf } from './ownership.ts';

/** Each record as the strings it is made of. */
export type ResolveTxt = (name: string) => Promise<string[][]>;

/** People wait for it in requests. */
const timeoutMs = 3000;

export const systemResolveTxt: ResolveTxt = (name) => new Resolver({ timeout: 1000, tries: 2 }).resolveTxt(name);

/** False also while DNS does not answer: nothing is proved then. */
export async function isProvedByRecord(
  domain: { hostname: string; account_id: string },
  resolveTxt: ResolveTxt,
): Promise<boolean> {
  const { name, value } = txtRecordOf(domain);
  const found = resolveTxt(name).then(
    (records) => records.some((parts) => parts.join('').trim() === value),
    () => false,
  );
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<false>((done) => {
    timer = setTimeout(done, timeoutMs, false);
  });
  return Promise.race([found, timeout]).finally(() => clearTimeout(timer));
}

// DNS checks of a hostname: that it resolves to an address, and that it has the TXT record by which its owner says
// which account may use it. That the address is ours is not checked, because this process may not know its public
// addresses; the certificate authority's challenge checks that.
import { Resolver } from 'node:dns/promises';
import { ApiError } from '../contract/errors.ts';
import { txtRecordOf } from './hostname.ts';

export type Resolve = (hostname: string) => Promise<{ address: string }[]>;

const addressTimeoutMs = 5000;

export async function requireAddress(hostname: string, resolve: Resolve): Promise<void> {
  const found = await lookUp(hostname, resolve);
  if (found !== null) throw notPointed(`${hostname} does not resolve to an address yet.`, found);
}

export const notPointed = (message: string, found: string): ApiError =>
  new ApiError('domain_not_pointed', message, { details: [{ path: 'hostname', message: found }] });

const noRecord = 'it has no A or AAAA record';

/** What is wrong; null: the hostname has addresses. */
async function lookUp(hostname: string, resolve: Resolve): Promise<string | null> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<null>((done) => {
    timer = setTimeout(done, addressTimeoutMs, null);
  });
  try {
    const addresses = await Promise.race([resolve(hostname), timeout]);
    if (addresses === null) return `the DNS lookup timed out after ${addressTimeoutMs / 1000} s`;
    return addresses.length > 0 ? null : noRecord;
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    if (code === 'ENOTFOUND' || code === 'ENODATA') return noRecord;
    return `the DNS lookup failed${typeof code === 'string' ? ` (${code})` : ''}`;
  } finally {
    clearTimeout(timer);
  }
}

/** Each record as the strings it is made of. */
export type ResolveTxt = (name: string) => Promise<string[][]>;

/** People wait for it in requests. */
const recordTimeoutMs = 3000;

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
    timer = setTimeout(done, recordTimeoutMs, false);
  });
  return Promise.race([found, timeout]).finally(() => clearTimeout(timer));
}

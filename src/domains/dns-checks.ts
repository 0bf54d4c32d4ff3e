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

/** DNS answered: there is no such record. */
const isMissing = (error: unknown): boolean =>
  ['ENOTFOUND', 'ENODATA'].includes(String((error as { code?: unknown }).code));

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
    if (isMissing(error)) return noRecord;
    const { code } = error as { code?: unknown };
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

/** The owner of the name decides how many records it has, and how long they are. */
const mostFound = 10;
const longestFound = 255;

export interface RecordLookup {
  isProved: boolean;
  /** The records that are there; null: DNS did not answer, so nothing is proved and nothing is missing. */
  found: string[] | null;
}

export async function lookUpRecord(
  domain: { hostname: string; account_id: string },
  resolveTxt: ResolveTxt,
): Promise<RecordLookup> {
  const { name, value } = txtRecordOf(domain);
  const records: Promise<string[] | null> = resolveTxt(name).then(
    (answers) => [...new Set(answers.map((parts) => parts.join('').trim()))],
    (error) => (isMissing(error) ? [] : null),
  );
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<null>((done) => {
    timer = setTimeout(done, recordTimeoutMs, null);
  });
  const answer = await Promise.race([records, timeout]).finally(() => clearTimeout(timer));
  return {
    isProved: answer?.includes(value) ?? false,
    found: answer?.slice(0, mostFound).map((text) => text.toWellFormed().slice(0, longestFound)) ?? null,
  };
}

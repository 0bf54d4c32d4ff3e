// Checks that a hostname resolves to an address. It does not check that the address is ours, because this process may not
// know its public addresses; the certificate authority's challenge checks that.
import { ApiError } from '../contract/errors.ts';

export type Resolve = (hostname: string) => Promise<{ address: string }[]>;

const timeoutMs = 5000;

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
    timer = setTimeout(done, timeoutMs, null);
  });
  try {
    const addresses = await Promise.race([resolve(hostname), timeout]);
    if (addresses === null) return `the DNS lookup timed out after ${timeoutMs / 1000} s`;
    return addresses.length > 0 ? null : noRecord;
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    if (code === 'ENOTFOUND' || code === 'ENODATA') return noRecord;
    return `the DNS lookup failed${typeof code === 'string' ? ` (${code})` : ''}`;
  } finally {
    clearTimeout(timer);
  }
}

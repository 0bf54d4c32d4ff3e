// Checks that a hostname has an address at all. Whether the address is ours is for the certificate authority to find out:
// it reaches what visitors reach, while this process may sit behind addresses it does not know.
import { ApiError } from '../contract/errors.ts';

export type Resolve = (hostname: string) => Promise<{ address: string }[]>;

const lookupMs = 5000;

export async function requireAddress(hostname: string, resolve: Resolve): Promise<void> {
  const found = await lookUp(hostname, resolve);
  if (found === null) return;
  throw new ApiError('domain_not_pointed', `The name ${hostname} leads nowhere yet.`, {
    details: [{ path: 'hostname', message: found }],
  });
}

/** What is wrong; null: it has addresses. */
async function lookUp(hostname: string, resolve: Resolve): Promise<string | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((done) => {
    timer = setTimeout(done, lookupMs, null);
  });
  try {
    const addresses = await Promise.race([resolve(hostname), late]);
    if (addresses === null) return `the DNS did not answer within ${lookupMs / 1000} s`;
    return addresses.length > 0 ? null : 'it has no A and no AAAA record';
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    if (code === 'ENOTFOUND' || code === 'ENODATA') return 'it has no A and no AAAA record';
    return `the DNS could not be asked${typeof code === 'string' ? ` (${code})` : ''}`;
  } finally {
    clearTimeout(timer);
  }
}

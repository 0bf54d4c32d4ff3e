// A certificate authority that speaks ACME.
import { X509Certificate } from 'node:crypto';
import type { Db } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { readRetryAfter } from '../../lib/retry-after.ts';
import type { Seal } from '../../lib/seal.ts';
import { type Authority, type CertificateRequest, NotIssued, type Obtained } from '../authority.ts';
import { defaultLimitMs } from '../retry.ts';
import { AcmeAccount } from './account.ts';
import { ariId, readWindow } from './ari.ts';
import { completeOrder } from './order.ts';
import { AcmeProblem, createTransport } from './transport.ts';

interface AcmeParts {
  db: Db;
  seal: Seal;
  clock: Clock;
  directory: string;
  email: string | null;
  /** A root to trust for the directory, in addition to the default ones. */
  ca: string | null;
  userAgent: string;
}

const authorityKeyIdentifier = '2.5.29.35';

export function createAcme(parts: AcmeParts): Authority {
  const transport = createTransport(parts);
  const account = new AcmeAccount({ ...parts, transport });
  const renewalInfoUrl = async () => {
    const { renewalInfo } = await (await account.session()).directory();
    return typeof renewalInfo === 'string' ? renewalInfo.replace(/\/$/, '') : null;
  };
  return {
    name: parts.directory,
    signs: () => true,
    obtain: (request) => obtain(account, request, parts),

    async ariIdOf(chainPem) {
      if ((await renewalInfoUrl()) === null) return null;
      return ariIdOf(chainPem);
    },

    async adviceOn(id) {
      const base = await renewalInfoUrl();
      if (base === null) return { window: null, retryAfterMs: null };
      const { data, headers } = await transport.request(`${base}/${id}`, 'get');
      return { window: readWindow(data), retryAfterMs: readRetryAfter(headers['retry-after'], parts.clock.now()) };
    },

    close: () => transport.close(),
  };
}

async function obtain(account: AcmeAccount, request: CertificateRequest, parts: AcmeParts): Promise<Obtained> {
  try {
    return await tryOnce(account, request, parts);
  } catch (error) {
    if (!(error instanceof AcmeProblem)) throw error;
    const retryAfterMs = error.type === 'rateLimited' ? (error.retryAfterMs ?? defaultLimitMs) : error.retryAfterMs;
    const kind = error.type === '' ? '' : ` (${error.type})`;
    throw new NotIssued(`The certificate authority refused: ${error.message}${kind}`, retryAfterMs, error);
  }
}

/** If the authority no longer knows the account, its orders are lost too: starts again with a new account and order. */
async function tryOnce(account: AcmeAccount, request: CertificateRequest, parts: AcmeParts): Promise<Obtained> {
  const session = await account.session();
  try {
    return await completeOrder(session, request, parts);
  } catch (error) {
    if (!(error instanceof AcmeProblem) || error.type !== 'accountDoesNotExist') throw error;
    await account.forget(session.client.getAccountUrl());
    await request.saveOrder(null);
    return completeOrder(await account.session(), { ...request, order: null }, parts);
  }
}

async function ariIdOf(chainPem: string): Promise<string | null> {
  const x509 = await import('@peculiar/x509');
  const certificate = new x509.X509Certificate(new X509Certificate(chainPem).raw);
  const extension =
    certificate.getExtension<InstanceType<typeof x509.AuthorityKeyIdentifierExtension>>(authorityKeyIdentifier);
  return extension?.keyId ? ariId(extension.keyId, certificate.serialNumber) : null;
}

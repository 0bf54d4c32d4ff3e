// A certificate authority that speaks ACME.
import { X509Certificate } from 'node:crypto';
import type { Db } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { readRetryAfter } from '../../lib/retry-after.ts';
import type { Seal } from '../../lib/seal.ts';
import { type Authority, NotIssued, type Obtained, type Work } from '../authority.ts';
import { defaultLimitMs } from '../retry.ts';
import { AcmeAccount } from './account.ts';
import { ariId, readWindow } from './ari.ts';
import { carryOut } from './order.ts';
import { AcmeProblem, createTransport } from './transport.ts';

export interface AcmeParts {
  db: Db;
  seal: Seal;
  clock: Clock;
  directory: string;
  email: string | null;
  /** Roots to trust for the directory itself, besides those everybody does. */
  ca: string | null;
  userAgent: string;
}

const authorityKeyIdentifier = '2.5.29.35';

export function createAcme(parts: AcmeParts): Authority {
  const transport = createTransport(parts);
  const account = new AcmeAccount({ ...parts, transport });
  const renewalInfo = async () => {
    const { renewalInfo } = await (await account.session()).directory();
    return typeof renewalInfo === 'string' ? renewalInfo.replace(/\/$/, '') : null;
  };
  return {
    name: parts.directory,
    obtain: (work) => obtain(account, work, parts),

    async ariIdOf(chainPem) {
      if ((await renewalInfo()) === null) return null;
      return ariIdOf(chainPem);
    },

    async adviceOn(id) {
      const base = await renewalInfo();
      if (base === null) return { window: null, askedMs: null };
      const { data, headers } = await transport.request(`${base}/${id}`, 'get');
      return { window: readWindow(data), askedMs: readRetryAfter(headers['retry-after'], parts.clock.now()) };
    },

    close: () => transport.close(),
  };
}

async function obtain(account: AcmeAccount, work: Work, parts: AcmeParts): Promise<Obtained> {
  try {
    return await tryOnce(account, work, parts);
  } catch (error) {
    if (!(error instanceof AcmeProblem)) throw error;
    const asked = error.type === 'rateLimited' ? (error.askedMs ?? defaultLimitMs) : error.askedMs;
    const kind = error.type === '' ? '' : ` (${error.type})`;
    throw new NotIssued(`The certificate authority refused: ${error.message}${kind}`, asked, error);
  }
}

/** An authority that has forgotten the account has forgotten the orders too. */
async function tryOnce(account: AcmeAccount, work: Work, parts: AcmeParts): Promise<Obtained> {
  const session = await account.session();
  try {
    return await carryOut(session, work, parts);
  } catch (error) {
    if (!(error instanceof AcmeProblem) || error.type !== 'accountDoesNotExist') throw error;
    await account.forget(session.client.getAccountUrl());
    await work.saveOrder(null);
    return carryOut(await account.session(), { ...work, order: null }, parts);
  }
}

async function ariIdOf(chainPem: string): Promise<string | null> {
  const x509 = await import('@peculiar/x509');
  const certificate = new x509.X509Certificate(new X509Certificate(chainPem).raw);
  const extension =
    certificate.getExtension<InstanceType<typeof x509.AuthorityKeyIdentifierExtension>>(authorityKeyIdentifier);
  return extension?.keyId ? ariId(extension.keyId, certificate.serialNumber) : null;
}

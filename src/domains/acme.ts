// A certificate authority that speaks ACME. An order (RFC 8555, 7.1.6) is started, or continued from its current state:
//
//   (none) → pending → ready → processing → valid → the certificate
//               └─────────┴─────────┴→ invalid
//
// Its URL and the certificate's key are saved before the first challenge is answered, so after a crash any process can
// continue the order.
import { X509Certificate } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Authorization, Order } from 'acme-client';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { readRetryAfter } from '../lib/retry-after.ts';
import type { Seal } from '../lib/seal.ts';
import { AcmeAccount, AcmeProblem, type AcmeSession, createTransport, newKeyPem } from './acme-session.ts';
import { type Authority, type CertificateRequest, NotIssued, type Obtained } from './authority.ts';
import { ariId, defaultLimitMs, readWindow } from './certificate-renewal.ts';
import { deleteChallenges, insertChallenge } from './certificate-source.ts';

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

interface OrderParts {
  db: Db;
  clock: Clock;
}

interface OrderInProgress {
  order: Order;
  keyPem: string;
}

const firstPollMs = 250;
const longestPollMs = 5000;
const patienceMs = 90_000;

async function completeOrder(session: AcmeSession, request: CertificateRequest, parts: OrderParts): Promise<Obtained> {
  const { client } = session;
  const { hostname } = request.domain;
  const { order: begun, keyPem } = (await resume(session, request)) ?? (await begin(session, request));
  let order = begun;
  try {
    if (order.status === 'pending') {
      await answerChallenges(session, request, order, parts);
      order = await settled(session, request, order, ['pending']);
    }
    if (order.status === 'ready') {
      order = await client.finalizeOrder(order, await signingRequest(hostname, keyPem));
    }
    order = await settled(session, request, order, ['ready', 'processing']);
    if (order.status !== 'valid') throw await refusal(session, request, order);
    return { chainPem: await client.getCertificate(order), keyPem };
  } finally {
    await deleteChallenges(parts.db, hostname, parts.clock.now());
  }
}

/** The saved order, if it can still lead to a certificate. */
async function resume({ client }: AcmeSession, { order }: CertificateRequest): Promise<OrderInProgress | null> {
  if (!order) return null;
  try {
    const found = await client.getOrder({ url: order.url } as Order);
    return found.status === 'invalid' ? null : { order: found, keyPem: order.keyPem };
  } catch (error) {
    if (error instanceof AcmeProblem && error.type !== 'accountDoesNotExist' && error.status < 429) return null;
    throw error;
  }
}

async function begin(
  session: AcmeSession,
  { domain, current, saveOrder }: CertificateRequest,
): Promise<OrderInProgress> {
  const identifiers = [{ type: 'dns', value: domain.hostname }];
  const replaces = current?.ari_id && (await session.directory()).renewalInfo ? { replaces: current.ari_id } : null;
  const keyPem = newKeyPem();
  const order = await session.client.createOrder({ identifiers, ...replaces }).catch((error) => {
    // The authority does not know the certificate to replace, or it was already replaced.
    if (!replaces || !(error instanceof AcmeProblem) || error.status >= 429) throw error;
    return session.client.createOrder({ identifiers });
  });
  await saveOrder({ url: order.url, keyPem });
  return { order, keyPem };
}

async function answerChallenges(
  { client }: AcmeSession,
  request: CertificateRequest,
  order: Order,
  { db, clock }: OrderParts,
) {
  const { hostname } = request.domain;
  for (const authorization of await client.getAuthorizations(order)) {
    if (authorization.status !== 'pending') continue;
    const challenge = authorization.challenges.find(({ type }) => type === 'http-01');
    if (!challenge) throw new NotIssued('The certificate authority does not offer the http-01 challenge.');
    const keyAuthorization = await client.getChallengeKeyAuthorization(challenge);
    await insertChallenge(db, { token: challenge.token, hostname, keyAuthorization }, clock.now());
    if (challenge.status === 'pending') await client.completeChallenge(challenge);
  }
}

/** Polls until the order has left these states. Gives up after `patienceMs`; the next attempt continues the order. */
async function settled(
  { client }: AcmeSession,
  { signal }: CertificateRequest,
  order: Order,
  passing: Order['status'][],
): Promise<Order> {
  let found = order;
  let waitMs = firstPollMs;
  for (let waitedMs = 0; passing.includes(found.status); waitedMs += waitMs) {
    if (waitedMs > patienceMs) throw new NotIssued('The certificate authority is still processing the order.');
    await pause(waitMs, undefined, { signal });
    found = await client.getOrder(found);
    waitMs = Math.min(waitMs * 1.5, longestPollMs);
  }
  return found;
}

async function signingRequest(hostname: string, keyPem: string): Promise<Buffer> {
  const { default: acme } = await import('acme-client');
  const [, csr] = await acme.crypto.createCsr({ altNames: [hostname] }, keyPem);
  return csr;
}

/** An order that ended without a certificate stays that way: the next attempt creates a new one. */
async function refusal({ client }: AcmeSession, request: CertificateRequest, order: Order): Promise<NotIssued> {
  const authorizations = await client.getAuthorizations(order).catch(() => []);
  await request.saveOrder(null);
  const detail = [order.error, ...authorizations.flatMap(errorsOf)].map(detailOf).find((text) => text !== null);
  return new NotIssued(detail ?? `The certificate authority ended the order as ${order.status}.`);
}

const errorsOf = ({ challenges }: Authorization): unknown[] =>
  challenges.map((challenge) => ('error' in challenge ? challenge.error : null));

function detailOf(problem: unknown): string | null {
  const detail = (problem as { detail?: unknown } | null | undefined)?.detail;
  return typeof detail === 'string' ? detail : null;
}

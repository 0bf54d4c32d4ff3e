// One order at a certificate authority (RFC 8555, 7.1.6), from wherever it stands:
//
//   (none) → pending → ready → processing → valid → the certificate
//               └─────────┴─────────┴→ invalid
//
// Its address and the key of the certificate are saved before it is carried out, so whoever comes after a crash goes on
// with it.
import { setTimeout as pause } from 'node:timers/promises';
import type { Authorization, Order } from 'acme-client';
import type { Db } from '../../db/database.ts';
import type { Clock } from '../../lib/clock.ts';
import { NotIssued, type Obtained, type Work } from '../authority.ts';
import { deleteChallenges, insertChallenge } from '../challenges.ts';
import { type AcmeSession, newKeyPem } from './account.ts';
import { AcmeProblem } from './transport.ts';

export interface OrderParts {
  db: Db;
  clock: Clock;
}

interface Held {
  order: Order;
  keyPem: string;
}

const firstPollMs = 250;
const longestPollMs = 5000;
const patienceMs = 90_000;

export async function carryOut(session: AcmeSession, work: Work, parts: OrderParts): Promise<Obtained> {
  const { client } = session;
  const { hostname } = work.domain;
  const { order: begun, keyPem } = (await resume(session, work)) ?? (await begin(session, work));
  let order = begun;
  try {
    if (order.status === 'pending') {
      await answerChallenges(session, work, order, parts);
      order = await settled(session, work, order, ['pending']);
    }
    if (order.status === 'ready') {
      order = await client.finalizeOrder(order, await requestFor(hostname, keyPem));
    }
    order = await settled(session, work, order, ['ready', 'processing']);
    if (order.status !== 'valid') throw await refusal(session, work, order);
    return { chainPem: await client.getCertificate(order), keyPem };
  } finally {
    await deleteChallenges(parts.db, hostname, parts.clock.now());
  }
}

/** The order that was under way, if it can still become a certificate. */
async function resume({ client }: AcmeSession, { order }: Work): Promise<Held | null> {
  if (!order) return null;
  try {
    const found = await client.getOrder({ url: order.url } as Order);
    return found.status === 'invalid' ? null : { order: found, keyPem: order.keyPem };
  } catch (error) {
    if (error instanceof AcmeProblem && error.type !== 'accountDoesNotExist' && error.status < 429) return null;
    throw error;
  }
}

async function begin(session: AcmeSession, { domain, current, saveOrder }: Work): Promise<Held> {
  const identifiers = [{ type: 'dns', value: domain.hostname }];
  const replaces = current?.ari_id && (await session.directory()).renewalInfo ? { replaces: current.ari_id } : null;
  const keyPem = newKeyPem();
  const order = await session.client.createOrder({ identifiers, ...replaces }).catch((error) => {
    // That certificate is not the authority's, or was replaced already: then this one replaces none.
    if (!replaces || !(error instanceof AcmeProblem) || error.status >= 429) throw error;
    return session.client.createOrder({ identifiers });
  });
  await saveOrder({ url: order.url, keyPem });
  return { order, keyPem };
}

async function answerChallenges({ client }: AcmeSession, work: Work, order: Order, { db, clock }: OrderParts) {
  const { hostname } = work.domain;
  for (const authorization of await client.getAuthorizations(order)) {
    if (authorization.status !== 'pending') continue;
    const challenge = authorization.challenges.find(({ type }) => type === 'http-01');
    if (!challenge)
      throw new NotIssued('The certificate authority does not offer to check the name over HTTP (http-01).');
    const keyAuthorization = await client.getChallengeKeyAuthorization(challenge);
    await insertChallenge(db, { token: challenge.token, hostname, keyAuthorization }, clock.now());
    if (challenge.status === 'pending') await client.completeChallenge(challenge);
  }
}

/** Looks until the order is in none of these states. An authority that takes longer is asked again another time. */
async function settled(
  { client }: AcmeSession,
  { signal }: Work,
  order: Order,
  passing: Order['status'][],
): Promise<Order> {
  let found = order;
  let waitMs = firstPollMs;
  for (let waitedMs = 0; passing.includes(found.status); waitedMs += waitMs) {
    if (waitedMs > patienceMs) throw new NotIssued('The certificate authority is still busy with the order.');
    await pause(waitMs, undefined, { signal });
    found = await client.getOrder(found);
    waitMs = Math.min(waitMs * 1.5, longestPollMs);
  }
  return found;
}

async function requestFor(hostname: string, keyPem: string): Promise<Buffer> {
  const { default: acme } = await import('acme-client');
  const [, request] = await acme.crypto.createCsr({ altNames: [hostname] }, keyPem);
  return request;
}

/** Such an order will never be anything else: the next attempt begins with a new one. */
async function refusal({ client }: AcmeSession, work: Work, order: Order): Promise<NotIssued> {
  const authorizations = await client.getAuthorizations(order).catch(() => []);
  await work.saveOrder(null);
  const detail = [order.error, ...authorizations.flatMap(errorsOf)].map(detailOf).find((text) => text !== null);
  return new NotIssued(detail ?? `The certificate authority ended the order as ${order.status}.`);
}

const errorsOf = ({ challenges }: Authorization): unknown[] =>
  challenges.map((challenge) => ('error' in challenge ? challenge.error : null));

function detailOf(problem: unknown): string | null {
  const detail = (problem as { detail?: unknown } | null | undefined)?.detail;
  return typeof detail === 'string' ? detail : null;
}

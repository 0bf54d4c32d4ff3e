// From a delivery to the request that is sent: its URL, its body, and the headers a receiver verifies it with, which
// are the service's own signature and the three of Standard Webhooks. And the secrets that sign it, sealed in the
// database.
import { createHmac, randomBytes } from 'node:crypto';
import { Memo } from '../lib/bounded-cache.ts';
import type { Seal } from '../lib/seal.ts';
import type { Claimed } from './delivery-queue.ts';

interface SignedRequest {
  url: URL;
  headers: Record<string, string>;
  body: string;
}

export interface RequestParts {
  seal: Seal;
  signatureHeader: string;
  userAgent: string;
}

const maxUrls = 10_000;

export class Requests {
  readonly #userAgent: string;
  readonly #names: ReturnType<typeof headerNames>;
  readonly #secrets: OpenedSecrets;
  readonly #urls = new Memo<URL>(maxUrls);

  constructor({ seal, signatureHeader, userAgent }: RequestParts) {
    this.#userAgent = userAgent;
    this.#names = headerNames(signatureHeader);
    this.#secrets = new OpenedSecrets(seal);
  }

  of(claimed: Claimed, nowMs: number): SignedRequest {
    const body = claimed.body ?? '';
    const signed = {
      eventId: claimed.event_id,
      deliveryId: claimed.id,
      type: claimed.type,
      body,
      secrets: this.#secretsOf(claimed, nowMs),
      timestampS: Math.floor(nowMs / 1000),
    };
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'user-agent': this.#userAgent,
      ...signedHeaders(this.#names, signed),
    };
    return { url: this.#urls.get(claimed.url, (text) => new URL(text)), headers, body };
  }

  #secretsOf({ webhook_id, secret_sealed, old_secret_sealed, old_secret_until }: Claimed, nowMs: number): string[] {
    const secrets = [this.#secrets.open(webhook_id, secret_sealed)];
    if (old_secret_sealed !== null && (old_secret_until ?? 0) > nowMs)
      secrets.push(this.#secrets.open(webhook_id, old_secret_sealed));
    return secrets;
  }
}

const secretPrefix = 'whsec_';

/** Lowercase hexadecimal HMAC-SHA256 of the raw body; the key is the whole secret string. */
export function signatureOf(secret: string, body: string): string {
  return createHmac('sha256', secret).update(body).digest('hex');
}

/** Standard Webhooks: over id, time and body; the key is the base64-decoded part after the prefix. */
function standardSignatureOf(secret: string, id: string, timestampS: number, body: string): string {
  const key = Buffer.from(secret.slice(secretPrefix.length), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${timestampS}.${body}`).digest('base64')}`;
}

interface Signed {
  eventId: string;
  deliveryId: string;
  type: string;
  body: string;
  /** The current one first; then the previous one, while both are valid. */
  secrets: string[];
  timestampS: number;
}

/** The other two headers have the prefix of the signature header: of `X-Service-Signature`, `X-Service`. */
export function headerNames(signatureHeader: string): { signature: string; event: string; delivery: string } {
  const stem = /^(.+)-signature$/i.exec(signatureHeader)?.[1] ?? 'X-Service';
  return { signature: signatureHeader, event: `${stem}-Event`, delivery: `${stem}-Delivery` };
}

export function signedHeaders(names: ReturnType<typeof headerNames>, signed: Signed): Record<string, string> {
  const { eventId, deliveryId, type, body, secrets, timestampS } = signed;
  return {
    [names.signature]: signatureOf(secrets[0]!, body),
    [names.event]: type,
    [names.delivery]: deliveryId,
    'webhook-id': eventId,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': secrets.map((secret) => standardSignatureOf(secret, eventId, timestampS, body)).join(' '),
  };
}

const secretBytes = 32;

export const newSecret = (): string => secretPrefix + randomBytes(secretBytes).toString('base64');

const secretContext = (webhookId: string): string => `webhook ${webhookId}`;

export const sealSecret = (seal: Seal, webhookId: string, secret: string): string =>
  seal.seal(secret, secretContext(webhookId));

const maxOpened = 10_000;

/** Opens sealed secrets and keeps them: the same few sign thousands of deliveries. */
export class OpenedSecrets {
  readonly #seal: Seal;
  readonly #opened = new Memo<string>(maxOpened);

  constructor(seal: Seal) {
    this.#seal = seal;
  }

  open(webhookId: string, sealed: string): string {
    return this.#opened.get(sealed, () => this.#seal.open(sealed, secretContext(webhookId)));
  }
}

// From a delivery to the request that is sent: its URL, its body, and the headers a receiver verifies it with.
import { Memo } from '../../lib/bounded-cache.ts';
import type { Seal } from '../../lib/seal.ts';
import { OpenedSecrets } from '../endpoints/secret.ts';
import type { Claimed } from '../queue/claim.ts';
import { headerNames, signedHeaders } from './signature.ts';

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

// What a receiver checks a delivery with: the header of the specification, and the three of Standard Webhooks.
import { createHmac } from 'node:crypto';

export const secretPrefix = 'whsec_';

/** Lowercase hexadecimal HMAC-SHA256 of the raw body; the key is the whole secret string. */
export function signatureOf(secret: string, body: string): string {
  return createHmac('sha256', secret).update(body).digest('hex');
}

/** Standard Webhooks: over id, time and body; the key is what the part behind the prefix decodes to. */
export function standardSignatureOf(secret: string, id: string, timestampS: number, body: string): string {
  const key = Buffer.from(secret.slice(secretPrefix.length), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${timestampS}.${body}`).digest('base64')}`;
}

export interface Signed {
  eventId: string;
  deliveryId: string;
  type: string;
  body: string;
  /** The current one first; the one before it while both are valid. */
  secrets: string[];
  timestampS: number;
}

/** `X-Service-Signature` has the neighbours `X-Service-Event` and `X-Service-Delivery`. */
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

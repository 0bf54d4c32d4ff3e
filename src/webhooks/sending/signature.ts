// The headers a receiver verifies a delivery with: the service's own signature, and the three of Standard Webhooks.
import { createHmac } from 'node:crypto';

export const secretPrefix = 'whsec_';

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

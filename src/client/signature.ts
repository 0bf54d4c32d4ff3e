// Checks that a webhook delivery came from the service. Uses Web Crypto, which runs everywhere and compares in constant
// time.

const utf8 = new TextEncoder();

async function isGenuine(key: Uint8Array, signature: Uint8Array, signed: Uint8Array): Promise<boolean> {
  if (key.length === 0) throw new TypeError('the secret is empty');
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const imported = await crypto.subtle.importKey('raw', key.slice(), algorithm, false, ['verify']);
  return crypto.subtle.verify('HMAC', imported, signature.slice(), signed.slice());
}

const bytesOf = (rawBody: string | Uint8Array): Uint8Array =>
  typeof rawBody === 'string' ? utf8.encode(rawBody) : rawBody;

const fromHex = (text: string): Uint8Array =>
  Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));

function fromBase64(text: string): Uint8Array | null {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}

/**
 * Whether `X-Service-Signature` is the signature of exactly these bytes. Pass the body as it arrived, before parsing it,
 * and the whole secret including `whsec_`.
 */
export async function verifySignature(
  rawBody: string | Uint8Array,
  header: string | string[] | null | undefined,
  secret: string,
): Promise<boolean> {
  if (typeof header !== 'string' || !/^[0-9a-f]{64}$/.test(header)) return false;
  return isGenuine(utf8.encode(secret), fromHex(header), bytesOf(rawBody));
}

/** The headers of a Fetch handler or of a Node server. */
export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

function headerOf(headers: WebhookHeaders, name: string): string | null {
  if (headers instanceof Headers) return headers.get(name);
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return Array.isArray(found) ? found.join(' ') : (found ?? null);
}

export interface VerifyOptions {
  /** How far the timestamp of the delivery may be from now; default 300 seconds. */
  toleranceS?: number;
  /** Milliseconds since 1970; default the current time. */
  now?: number;
}

const prefix = 'whsec_';

/**
 * Whether the Standard Webhooks headers sign exactly these bytes and are recent. This rejects replays of old deliveries;
 * to reject replays within the tolerance as well, remember `webhook-id`.
 */
export async function verifyWebhook(
  rawBody: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string,
  { toleranceS = 300, now = Date.now() }: VerifyOptions = {},
): Promise<boolean> {
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  const signatures = headerOf(headers, 'webhook-signature');
  if (id === null || signatures === null || timestamp === null || !/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(now / 1000 - Number(timestamp)) > toleranceS) return false;
  const key = fromBase64(secret.startsWith(prefix) ? secret.slice(prefix.length) : secret);
  if (key === null) throw new TypeError('the secret is not whsec_ and base64');
  const head = utf8.encode(`${id}.${timestamp}.`);
  const body = bytesOf(rawBody);
  const signed = new Uint8Array(head.length + body.length);
  signed.set(head);
  signed.set(body, head.length);
  // While a secret is being rotated there is a signature for each of two secrets.
  for (const each of signatures.split(' ').slice(0, 10)) {
    const signature = each.startsWith('v1,') ? fromBase64(each.slice(3)) : null;
    if (signature !== null && (await isGenuine(key, signature, signed))) return true;
  }
  return false;
}

import { type ImageReference, nameOf } from '../contract/image-reference.ts';
import type { EngineFault } from './engine.ts';

/** The first that matches counts. What matches none is a problem of the engine, such as a full disk. */
const faults: [EngineFault, RegExp][] = [
  // Before the others: a registry may say "denied" of requests that are only too many.
  ['registry_rate_limited', /toomanyrequests|too many requests|rate limit|\b429\b/i],
  ['image_denied', /\bdenied\b|unauthorized|authentication required|authorization failed|no basic auth|forbidden/i],
  // A name that does not resolve, and connections that are not even made.
  ['registry_unreachable', /no such host|server misbehaving|\bdial (tcp|udp)\b|\blookup\b.* on |proxyconnect/i],
  ['image_not_found', /manifest unknown|name unknown|not found|no matching manifest|no image found|does not exist/i],
  ['registry_unreachable', /connection refused|no route to host|network is unreachable/i],
  ['registry_unreachable', /x509|HTTP response to HTTPS client|malformed HTTP response/i],
  // These may pass: the registry is slow, is being restarted, or breaks off.
  ['registry_failing', /connection reset|broken pipe|unexpected EOF|: EOF$|tls: |TLS handshake/i],
  ['registry_failing', /time-?out|timed out|deadline exceeded|request canceled/i],
  ['registry_failing', /\b50[0-4]\b|service unavailable|bad gateway|internal server error/i],
];

/**
 * Docker, Podman and kubelets pass on the registry's response only as text. "Denied, or does not exist", which Docker Hub sends to
 * anyone without a login, counts as denied.
 */
export function pullFault(reference: ImageReference, message: string, statusCode: number | null): EngineFault {
  // Removes the image's name first: it may itself contain such words, as in team/unauthorized.
  const names = [nameOf(reference), reference.repository, reference.repository.replace(/^library\//, '')];
  const said = names.reduce((text, name) => text.replaceAll(name, ''), message);
  const found = faults.find(([, pattern]) => pattern.test(said));
  return found?.[0] ?? (statusCode === 404 ? 'image_not_found' : 'unavailable');
}

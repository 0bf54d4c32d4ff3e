// What the refusal of a registry means: from its own answer or, where Docker, Podman or a kubelet pulls, from the text
// they pass on. No I/O.
import { type ImageReference, nameOf } from '../../contract/references.ts';
import { EngineError, type EngineFault } from '../engine.ts';
import type { Answer } from './registry-http.ts';
import { publicReason } from './registry-reasons.ts';

const maxMessage = 200;

/** The registry's own words (`errors` of the distribution specification); empty where it is something else that answered. */
function registryMessage({ body }: Pick<Answer, 'body'>): string {
  try {
    const { errors } = JSON.parse(body.toString('utf8')) as { errors?: { code?: unknown; message?: unknown }[] };
    const words = (errors ?? []).map(({ code, message }) => String(message || code || ''));
    return words.filter(Boolean).join('; ').slice(0, maxMessage);
  } catch {
    return '';
  }
}

/** Of an answer that is not the one hoped for. */
export function refusal(reference: ImageReference, origin: string, answer: Answer, hasLogin: boolean): EngineError {
  const image = `${nameOf(reference)}${reference.digest ? `@${reference.digest}` : `:${reference.tag}`}`;
  const { host } = new URL(origin);
  // For the operator's log.
  const said = new Error(registryMessage(answer));
  switch (true) {
    case answer.status === 401 || answer.status === 403: {
      const advice = hasLogin
        ? 'the login for this registry may not pull it'
        : 'add a login for this registry (POST /v1/registries), or check the name';
      return new EngineError('image_denied', `${host} does not give out ${image}: ${advice}`, said);
    }
    case answer.status === 404:
      return new EngineError('image_not_found', `${host} has no ${image}`, said);
    case answer.status === 429:
      return new EngineError('registry_rate_limited', `${host} accepts no more requests for now`, said);
    default:
      return new EngineError('registry_failing', `${host} answers with status ${answer.status}`, said);
  }
}

/** Where an engine pulls: `text` is what it said. */
export function pullError(reference: ImageReference, text: string, statusCode: number | null, cause?: unknown) {
  const fault = pullFault(reference, text, statusCode);
  const image = `${nameOf(reference)}${reference.digest ? `@${reference.digest}` : `:${reference.tag}`}`;
  const reason = publicReason(text);
  return new EngineError(fault, messageFor(fault, image, reference.registry, reason), new Error(text, { cause }));
}

function messageFor(fault: EngineFault, image: string, registry: string, reason: string | null): string {
  switch (fault) {
    case 'image_not_found':
      return `${registry} has no ${image}${reason === null ? '' : `: ${reason}`}`;
    case 'image_denied':
      return `${registry} does not give out ${image}: add a login for it (POST /v1/registries), or check the name`;
    default:
      return `${registry}: ${reason ?? 'no usable answer'}`;
  }
}

const tooMany = /toomanyrequests|too many requests|rate limit|\b429\b/i;

/** What a runtime makes of the registry's answer, as the status of its call (gRPC). Other codes say nothing of a cause. */
const callFaults: Record<string, EngineFault> = {
  NotFound: 'image_not_found',
  PermissionDenied: 'image_denied',
  Unauthenticated: 'image_denied',
};

/** The status of the registry's answer, where what pulls passes it on. */
function answerFault(text: string): EngineFault | null {
  const status = Number(/\b(?:status\b[^\n]*?: |status code )(\d{3})\b/i.exec(text)?.[1]);
  if (status === 401 || status === 403) return 'image_denied';
  if (status === 404) return 'image_not_found';
  return status >= 500 ? 'registry_failing' : null;
}

/** The first that matches counts. What matches none is a problem of the engine, such as a full disk. */
const pullFaults: [EngineFault, RegExp][] = [
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
 * Docker, Podman and kubelets pass on the registry's response only as text. The status that is in it counts first: the words
 * differ from version to version. "Denied, or does not exist", which Docker Hub sends to anyone without a login, counts as denied.
 */
export function pullFault(reference: ImageReference, message: string, statusCode: number | null): EngineFault {
  // Removes the image's name first: it may itself contain such words, as in team/unauthorized.
  const names = [nameOf(reference), reference.repository, reference.repository.replace(/^library\//, '')];
  const text = names.reduce((rest, name) => rest.replaceAll(name, ''), message);
  // Before the others: a registry may say "denied" of requests that are only too many, and with any status.
  if (tooMany.test(text)) return 'registry_rate_limited';
  const call = callFaults[/\bcode = (\w+)/.exec(text)?.[1] ?? ''] ?? answerFault(text);
  if (call) return call;
  const found = pullFaults.find(([, pattern]) => pattern.test(text));
  return found?.[0] ?? (statusCode === 404 ? 'image_not_found' : 'unavailable');
}

// Answers the authentication challenge of a registry (WWW-Authenticate, RFC 9110 and the distribution specification)
// with a login or a token.
import type { ImageReference } from '../../contract/references.ts';
import { EngineError, type RegistryAuth } from '../engine.ts';
import { refusal } from './registry-faults.ts';
import { type Answer, isSafe, type RegistryHttp } from './registry-http.ts';

const maxTokenBytes = 64 * 1024;

interface Refused {
  reference: ImageReference;
  /** Of the registry that answered 401. */
  from: URL;
  answer: Answer;
  login: RegistryAuth | null;
}

/** Null where nothing that we have would help. */
export async function authorize(http: RegistryHttp, refused: Refused, signal: AbortSignal): Promise<string | null> {
  const header = [refused.answer.headers['www-authenticate'] ?? []].flat().join(', ');
  for (const challenge of parseChallenges(header)) {
    if (challenge.scheme === 'bearer') return `Bearer ${await fetchToken(http, refused, challenge, signal)}`;
    if (refused.login) return basic(refused.login);
  }
  return null;
}

const basic = ({ username, password }: RegistryAuth): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

async function fetchToken(
  http: RegistryHttp,
  { reference, from, login }: Refused,
  challenge: Extract<Challenge, { scheme: 'bearer' }>,
  signal: AbortSignal,
): Promise<string> {
  const realm = URL.parse(challenge.realm);
  if (!realm || !isSafe(realm, from)) {
    throw new EngineError('registry_unreachable', `${from.host} sends for a token to where it may not`);
  }
  const scope = challenge.scope ?? `repository:${reference.repository}:pull`;
  const asked = { scope, ...(challenge.service !== null && { service: challenge.service }) };
  const answer = login?.identitytoken
    ? await http.ask(realm, refreshed(asked, login.identitytoken, signal))
    : await http.ask(withQuery(realm, asked), {
        headers: login ? { authorization: basic(login) } : {},
        maxBytes: maxTokenBytes,
        signal,
      });
  if (answer.status !== 200) throw refusal(reference, realm.origin, answer, login !== null);
  return tokenOf(answer, realm);
}

function withQuery(realm: URL, asked: Record<string, string>): URL {
  const url = new URL(realm);
  for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value);
  return url;
}

const refreshed = (asked: Record<string, string>, token: string, signal: AbortSignal) => ({
  method: 'POST' as const,
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
  body: new URLSearchParams({
    ...asked,
    grant_type: 'refresh_token',
    client_id: 'sluice',
    refresh_token: token,
  }).toString(),
  maxBytes: maxTokenBytes,
  signal,
});

function tokenOf({ body }: Answer, realm: URL): string {
  try {
    const { token, access_token } = JSON.parse(body.toString('utf8')) as { token?: unknown; access_token?: unknown };
    const found = token ?? access_token;
    // A header takes no line breaks.
    if (typeof found === 'string' && /^[\x21-\x7e]+$/.test(found)) return found;
  } catch {}
  throw new EngineError('registry_failing', `${realm.host} gave no token`);
}

type Challenge =
  | { scheme: 'basic' }
  | { scheme: 'bearer'; realm: string; service: string | null; scope: string | null };

/** Longer than any that a registry has reason to send: what follows is not read. */
const maxChallenge = 4096;
/** A name is tried from its beginning only, so that a long one is read once. */
const challengeParameter = /(?<![a-z_])([a-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/gi;

/** The ones that are understood; Bearer first, which registries that offer both prefer. */
export function parseChallenges(whole: string): Challenge[] {
  const header = whole.slice(0, maxChallenge);
  const starts = [...header.matchAll(/(?:^|,)\s*(basic|bearer)(?=\s|$|,)/gi)];
  const found = starts.flatMap((start, index): Challenge[] => {
    if (start[1]!.toLowerCase() === 'basic') return [{ scheme: 'basic' }];
    const given = parametersOf(header.slice(start.index + start[0].length, starts[index + 1]?.index));
    const realm = given.get('realm');
    if (realm === undefined) return [];
    return [{ scheme: 'bearer', realm, service: given.get('service') ?? null, scope: given.get('scope') ?? null }];
  });
  return found.sort((a, b) => Number(a.scheme === 'basic') - Number(b.scheme === 'basic'));
}

function parametersOf(text: string): Map<string, string> {
  return new Map(
    [...text.matchAll(challengeParameter)].map(([, name, quoted, bare]) => [
      name!.toLowerCase(),
      quoted?.replace(/\\(.)/g, '$1') ?? bare!,
    ]),
  );
}

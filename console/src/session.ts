// Who is signed in. The console signs in once with a token and gets a cookie that no script can read and that is sent to
// /console/session alone. There it gets short-lived tokens, which live in memory only.
import { errorOfAnswer } from '../../src/client/error.ts';
import { createClient, SluiceError } from '../../src/client/index.ts';
import type { Scope } from '../../src/contract/scopes.ts';
import { allows } from '../../src/contract/scopes.ts';
import type { Token } from '../../src/contract/tokens.ts';
import { Cell, useCell } from './cell.ts';
import { observedFetch } from './wire.ts';

export type Client = ReturnType<typeof createClient>;

export type Session =
  | { status: 'out'; message: string | null }
  | { status: 'checking' }
  | { status: 'in'; client: Client; me: Token };

const sessionPath = '/console/session';
const retryMs = 2000;
/** A token is renewed when so much of its time is left. */
const spareMs = 60_000;

export const session = new Cell<Session>({ status: 'checking' });

interface Access {
  token: string;
  endMs: number;
}

let access: Access | null = null;
/** The answer itself where the service refuses. */
async function requestAccess(path: string, headers: Record<string, string> = {}): Promise<Access | Response> {
  const response = await observedFetch(path, { method: 'POST', headers, cache: 'no-store' });
  if (response.status !== 200) return response;
  const { token, expires_at } = await response.json();
  return { token, endMs: Date.parse(expires_at) };
}

let renewing: Promise<Access | Response> | null = null;

async function currentAccess(): Promise<Access | Response> {
  if (access && access.endMs - Date.now() > spareMs) return access;
  renewing ??= requestAccess(`${sessionPath}/token`).finally(() => {
    renewing = null;
  });
  const renewed = await renewing;
  access = renewed instanceof Response ? null : renewed;
  return renewed;
}

/** The browser has no session: as if the service had refused. */
const signedOut = (): Response =>
  new Response(JSON.stringify({ error: { code: 'token_missing', message: 'Not signed in.' } }), { status: 401 });

/** Sends a short-lived token, and a new one where the service no longer takes the one it has. */
const fetchSignedIn: typeof fetch = async (input, init) => {
  const send = async () => {
    const now = await currentAccess();
    if (now instanceof Response) return now.status === 204 ? signedOut() : now.clone();
    const headers = new Headers(init?.headers);
    headers.set('authorization', `Bearer ${now.token}`);
    return observedFetch(input, { ...init, headers });
  };
  const response = await send();
  if (response.status !== 401 || access === null) return response;
  access = null;
  return send();
};

let made: Client | null = null;
/** Made when somebody signs in: a test of what is read has no address. */
const theClient = (): Client => {
  made ??= createClient({ url: location.origin, token: 'of-the-session', fetch: fetchSignedIn });
  return made;
};

async function enter(): Promise<void> {
  const client = theClient();
  session.set({ status: 'in', client, me: await client.token.get() });
}

/** Throws if the service rejects the token. */
export async function signIn(token: string): Promise<void> {
  const answer = await requestAccess(sessionPath, { authorization: `Bearer ${token}` });
  if (answer instanceof Response) throw errorOfAnswer('Signing in', answer, await answer.text());
  access = answer;
  await enter();
}

export async function signOut(): Promise<void> {
  await observedFetch(sessionPath, { method: 'DELETE' }).catch(() => {});
  access = null;
  session.set({ status: 'out', message: 'Signed out.' });
}

/** When the page is loaded: goes on with the session that the browser has. Retries while the service is away. */
export async function restoreSession(): Promise<void> {
  try {
    await enter();
  } catch (error) {
    if (!(error instanceof SluiceError) || error.status !== 401) {
      setTimeout(restoreSession, retryMs);
    } else {
      access = null;
      session.set({ status: 'out', message: null });
    }
  }
}

/** Signs out if the error says that the session is over; returns whether it did. */
export function endsSession(error: unknown): boolean {
  if (!(error instanceof SluiceError) || error.status !== 401) return false;
  // The page to sign in says itself why a token is refused.
  if (session.get().status === 'out') return false;
  access = null;
  session.set({ status: 'out', message: 'The session has ended. Sign in again.' });
  return true;
}

export function useSignedIn(): { client: Client; me: Token } {
  const now = useCell(session);
  if (now.status !== 'in') throw new Error('not signed in');
  return now;
}

/** Whether the token has a scope. Pages do not offer what the token may not do. */
export function useCan(): (scope: Scope) => boolean {
  const { me } = useSignedIn();
  const held = new Set(me.scopes);
  return (scope) => allows(held, scope);
}

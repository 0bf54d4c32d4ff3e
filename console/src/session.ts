// Who is signed in. The token is kept in this tab's session storage only, and never in an address.
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

const storageKey = 'sluice-token';
const retryMs = 2000;

export const session = new Cell<Session>({ status: 'out', message: null });

const clientFor = (token: string): Client => createClient({ url: location.origin, token, fetch: observedFetch });

/** Throws if the service rejects the token. */
export async function signIn(token: string): Promise<void> {
  const client = clientFor(token);
  const me = await client.token.get();
  sessionStorage.setItem(storageKey, token);
  session.set({ status: 'in', client, me });
}

export function signOut(message: string | null = null): void {
  sessionStorage.removeItem(storageKey);
  session.set({ status: 'out', message });
}

/** After a reload: signs in with the stored token. Retries while the service is away. */
export async function restoreSession(): Promise<void> {
  const token = sessionStorage.getItem(storageKey);
  if (token === null) return;
  session.set({ status: 'checking' });
  try {
    await signIn(token);
  } catch (error) {
    if (!endsSession(error)) setTimeout(restoreSession, retryMs);
  }
}

/** Signs out if the error says that the token is no longer valid; returns whether it did. */
export function endsSession(error: unknown): boolean {
  if (!(error instanceof SluiceError) || error.status !== 401) return false;
  signOut(`${error.message} Sign in with another token.`);
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

// A token in a file, which is replaced there before it expires.
import { readFile } from 'node:fs/promises';
import { AccessError, type TokenSource } from './access.ts';

/** Tokens of service accounts are replaced when four fifths of their time are over, so minutes before they expire. */
const rereadAfterMs = 30_000;

export function tokenFile(path: string, now: () => number = () => performance.now()): TokenSource {
  let known: { token: string; at: number } | null = null;
  return async (anew) => {
    if (known && !anew && now() - known.at < rereadAfterMs) return known.token;
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      throw new AccessError(`the token in ${path} cannot be read (${error.code})`);
    });
    const token = text.trim();
    if (token === '') throw new AccessError(`${path} has no token`);
    known = { token, at: now() };
    return token;
  };
}

// The keys of TLS tickets in the form HAProxy wants. It needs as many as it remembers: the last one encrypts, the others
// still decrypt.
import { randomBytes } from 'node:crypto';
import { readOrEmpty, replaceFile } from './folder.ts';

const remembered = 3;

export async function ensureTicketKeys(path: string): Promise<void> {
  if ((await readOrEmpty(path)) !== '') return;
  const keys = Array.from({ length: remembered }, () => randomBytes(48).toString('base64'));
  await replaceFile(path, `${keys.join('\n')}\n`);
}

/** Gives the command that tells a running HAProxy; null: it is the file's already. */
export async function writeTicketKey(path: string, key: Buffer): Promise<string | null> {
  const text = key.toString('base64');
  const keys = (await readOrEmpty(path)).trim().split('\n');
  if (keys.includes(text)) return null;
  await replaceFile(path, `${[...keys.slice(1 - remembered), text].join('\n')}\n`);
  return `set ssl tls-key ${path} ${text}`;
}

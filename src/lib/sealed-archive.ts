// Several files in one, compressed and encrypted with a passphrase: scrypt makes a key of it, and AES-256-GCM encrypts.
//
//   sluice-backup 1\n · 16 bytes of salt · 12 bytes of nonce · encrypted · 16 bytes of tag
//
// Encrypted is, compressed by gzip and for each file: a line of JSON with its name and size, then its bytes. Nothing that is
// read counts before the tag at the end has been checked.
import { createCipheriv, createDecipheriv, randomBytes, scryptSync } from 'node:crypto';
import {
  closeSync,
  createReadStream,
  createWriteStream,
  fstatSync,
  openSync,
  readSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';

const magic = Buffer.from('sluice-backup 1\n');
const saltBytes = 16;
const nonceBytes = 12;
const tagBytes = 16;
const headBytes = magic.length + saltBytes + nonceBytes;
const longestLine = 1000;

export class ArchiveError extends Error {}

export interface ArchivedFile {
  name: string;
  path: string;
}

const keyOf = (passphrase: string, salt: Buffer): Buffer =>
  scryptSync(passphrase, salt, 32, { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 1024 * 1024 });

/** Fails if the file is there already. Only its owner can read it. */
export async function writeArchive(path: string, passphrase: string, files: ArchivedFile[]): Promise<void> {
  const [salt, nonce] = [randomBytes(saltBytes), randomBytes(nonceBytes)];
  const head = Buffer.concat([magic, salt, nonce]);
  const cipher = createCipheriv('aes-256-gcm', keyOf(passphrase, salt), nonce).setAAD(head);
  async function* plain() {
    for (const { name, path: source } of files) {
      yield Buffer.from(`${JSON.stringify({ name, size: statSync(source).size })}\n`);
      yield* createReadStream(source);
    }
  }
  async function* sealed(encrypted: AsyncIterable<Buffer>) {
    yield head;
    yield* encrypted;
    yield cipher.getAuthTag();
  }
  const target = createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true });
  await pipeline(Readable.from(plain()), createGzip(), cipher, sealed, target);
}

/** Writes its files into the folder, which is to be thrown away if this fails. Returns their names. */
export async function readArchive(
  path: string,
  passphrase: string,
  folder: string,
  isWanted: (name: string) => boolean,
): Promise<string[]> {
  const { head, tag, size } = readEnds(path);
  const salt = head.subarray(magic.length, magic.length + saltBytes);
  const decipher = createDecipheriv('aes-256-gcm', keyOf(passphrase, salt), head.subarray(magic.length + saltBytes));
  decipher.setAAD(head);
  decipher.setAuthTag(tag);
  const names: string[] = [];
  try {
    const encrypted = createReadStream(path, { start: headBytes, end: size - tagBytes - 1 });
    await pipeline(encrypted, decipher, createGunzip(), (bytes) => unpack(bytes, folder, isWanted, names));
  } catch (error) {
    // Decrypted with a wrong key, it is noise, which fails in many ways.
    throw new ArchiveError('The passphrase is not the one of this backup, or the file is damaged.', { cause: error });
  }
  return names;
}

function readEnds(path: string): { head: Buffer; tag: Buffer; size: number } {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const [head, tag] = [Buffer.alloc(headBytes), Buffer.alloc(tagBytes)];
    readSync(file, head, 0, headBytes, 0);
    if (size < headBytes + tagBytes || !head.subarray(0, magic.length).equals(magic))
      throw new ArchiveError(`${path} is not a backup of Sluice.`);
    readSync(file, tag, 0, tagBytes, size - tagBytes);
    return { head, tag, size };
  } finally {
    closeSync(file);
  }
}

async function unpack(
  bytes: AsyncIterable<Buffer>,
  folder: string,
  isWanted: (name: string) => boolean,
  names: string[],
): Promise<void> {
  let line = Buffer.alloc(0);
  let target: number | null = null;
  let left = 0;
  try {
    for await (let chunk of bytes) {
      while (chunk.length > 0) {
        if (target !== null) {
          const part = chunk.subarray(0, left);
          writeSync(target, part);
          left -= part.length;
          chunk = chunk.subarray(part.length);
        } else {
          const end = chunk.indexOf(10);
          line = Buffer.concat([line, end < 0 ? chunk : chunk.subarray(0, end)]);
          chunk = end < 0 ? chunk.subarray(chunk.length) : chunk.subarray(end + 1);
          if (line.length > longestLine) throw new Error('a line is too long');
          if (end < 0) continue;
          const { name, size } = JSON.parse(line.toString('utf8')) as { name: string; size: number };
          if (!isWanted(name)) throw new Error(`${name} does not belong into a backup`);
          line = Buffer.alloc(0);
          target = openSync(join(folder, name), 'wx', 0o600);
          left = size;
          names.push(name);
        }
        if (target !== null && left === 0) {
          closeSync(target);
          target = null;
        }
      }
    }
    if (target !== null || line.length > 0) throw new Error('it ends too soon');
  } finally {
    if (target !== null) closeSync(target);
  }
}

// Looks up the files below a folder. Small files are kept in memory, large ones are opened for each response. Each lookup
// checks the file system, once for all requests in the same turn of the event loop, so a replaced file is served at once.
// A compressed form is served only while it is one of the file beside it: that is checked when either has changed.
import { createHash } from 'node:crypto';
import { constants, type Stats, statSync } from 'node:fs';
import { open, readFile, realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip } from 'node:zlib';
import { type Encoding, suffixOf } from './request-rules.ts';

/** A file as it is, or in a compressed form that is stored beside it. */
interface Form {
  path: string;
  encoding: Encoding | undefined;
}

export interface StoredFile {
  /** With symbolic links resolved, and checked to be inside the root. */
  realPath: string;
  size: number;
  mtimeMs: number;
  etag: string;
  type: string;
  /** The whole file if it is small. */
  bytes: Buffer | null;
  /** On every response with this file; names and values in turn, as writeHead takes them. */
  headers: string[];
  /** All headers of a response with the whole file. */
  wholeHeaders: string[];
}

const maxTotalBytes = 64 * 1024 * 1024;
/** Without O_NONBLOCK, opening a named pipe would block until something writes to it. */
const readFlags = constants.O_RDONLY | constants.O_NONBLOCK;

interface Known {
  stamp: string;
  file: StoredFile;
}

const keyOf = ({ path, encoding }: Form) => (encoding === undefined ? path : `${encoding} ${path}`);
const stampOf = (facts: Stats) => `${facts.ino} ${facts.size} ${facts.mtimeMs} ${facts.ctimeMs}`;

interface Content {
  size: number;
  mtimeMs: number;
  bytes: Buffer | null;
}

function describe(rules: FileRules, { path, encoding }: Form, realPath: string, content: Content): StoredFile {
  const { size, mtimeMs, bytes } = content;
  // A hash of the content if it is in memory, so that every machine that serves the same files sends the same tag.
  const digest = bytes && createHash('sha256').update(bytes).digest('base64url').slice(0, 27);
  const etag = `"${digest ?? `${size.toString(16)}-${Math.round(mtimeMs * 1000).toString(16)}`}"`;
  const type = rules.typeOf(path);
  const headers = [
    ...rules.commonHeaders,
    ...['Cache-Control', rules.cacheControlOf(path), 'ETag', etag, 'Last-Modified', new Date(mtimeMs).toUTCString()],
    ...['Accept-Ranges', 'bytes', ...(rules.hasCompressedForms(path) ? ['Vary', 'Accept-Encoding'] : [])],
  ];
  const about = ['Content-Type', type, 'Content-Length', String(size)];
  const coded = encoding === undefined ? [] : ['Content-Encoding', encoding];
  return { realPath, size, mtimeMs, etag, type, bytes, headers, wholeHeaders: [...headers, ...about, ...coded] };
}

export class StoredFiles {
  readonly #root: string;
  readonly #rules: FileRules;
  #known = new Map<string, Known>();
  #keptBytes = 0;
  /** Files whose state on disk was checked in this turn of the event loop. */
  #checked = new Map<string, StoredFile>();

  constructor(root: string, rules: FileRules) {
    this.#root = root;
    this.#rules = rules;
  }

  /** The file, if it is in memory and unchanged on disk; undefined: call `load`. */
  recall(form: Form): StoredFile | undefined {
    const key = keyOf(form);
    const checked = this.#checked.get(key);
    if (checked !== undefined) return checked;
    const known = this.#known.get(key);
    if (known === undefined) return undefined;
    if (this.#stampNow(form) !== known.stamp) return undefined;
    this.#remember(key, known.file);
    return known.file;
  }

  /** Of the file, and for a compressed form of the plain file too. */
  #stampNow(form: Form): string | undefined {
    const facts = statSync(this.#fileOf(form), { throwIfNoEntry: false });
    if (facts === undefined) return undefined;
    if (form.encoding === undefined) return stampOf(facts);
    const plain = statSync(join(this.#root, form.path), { throwIfNoEntry: false });
    return plain && `${stampOf(facts)} ${stampOf(plain)}`;
  }

  #fileOf({ path, encoding }: Form): string {
    return join(this.#root, encoding === undefined ? path : path + suffixOf[encoding]);
  }

  /** The file as it is on disk now; null: there is none. */
  async load(form: Form): Promise<StoredFile | null> {
    const found = form.encoding === undefined ? await this.#read(form) : await this.#readCoded(form, form.encoding);
    this.#keep(keyOf(form), found);
    if (found === null) return null;
    this.#remember(keyOf(form), found.file);
    return found.file;
  }

  #remember(key: string, file: StoredFile): void {
    if (this.#checked.size === 0) setImmediate(() => this.#checked.clear());
    this.#checked.set(key, file);
  }

  async #read(form: Form): Promise<Known | null> {
    try {
      const [root, real] = await Promise.all([realpath(this.#root), realpath(this.#fileOf(form))]);
      if (!real.startsWith(root + sep)) return null;
      const handle = await open(real, readFlags);
      try {
        const facts = await handle.stat();
        if (!facts.isFile()) return null;
        const isSmall = facts.size <= this.#rules.maxBytesInMemory(form.path);
        const bytes = isSmall ? await readFile(handle) : null;
        const size = bytes?.length ?? facts.size;
        const file = describe(this.#rules, form, real, { size, mtimeMs: facts.mtimeMs, bytes });
        return { stamp: stampOf(facts), file };
      } finally {
        await handle.close();
      }
    } catch {
      // Missing, unreadable, a loop of links, a name too long: for a client there is no such file.
      return null;
    }
  }

  /** A compressed form; null where it is not one of the plain file as it is now. */
  async #readCoded(form: Form, encoding: Encoding): Promise<Known | null> {
    const coded = await this.#read(form);
    if (coded === null) return null;
    const plain = await this.#read({ path: form.path, encoding: undefined });
    if (plain === null || !(await isFormOf(coded.file, encoding, plain.file))) return null;
    return { file: coded.file, stamp: `${coded.stamp} ${plain.stamp}` };
  }

  #keep(key: string, known: Known | null): void {
    const before = this.#known.get(key);
    if (before !== undefined) this.#keptBytes -= weight(before);
    this.#known.delete(key);
    if (known === null) return;
    this.#known.set(key, known);
    this.#keptBytes += weight(known);
    // A Map iterates in insertion order, so the oldest entry comes first.
    for (const [oldest, entry] of this.#known) {
      if (this.#keptBytes <= maxTotalBytes) break;
      this.#known.delete(oldest);
      this.#keptBytes -= weight(entry);
    }
  }
}

const unpack = { br: promisify(brotliDecompress), gzip: promisify(gunzip) };

async function isFormOf(coded: StoredFile, encoding: Encoding, plain: StoredFile): Promise<boolean> {
  // What does not fit into memory is not compared, and not served compressed either.
  if (coded.bytes === null || plain.bytes === null) return false;
  try {
    return (await unpack[encoding](coded.bytes, { maxOutputLength: plain.size + 1 })).equals(plain.bytes);
  } catch {
    return false;
  }
}

/** An entry takes memory even without the file's bytes. */
const weight = (known: Known) => (known.file.bytes?.length ?? 0) + 1024;

/** What differs between sites: headers, and what is kept in memory. Paths are relative to the site's root. */
export interface FileRules {
  /** On every response, errors included; names and values in turn, as writeHead takes them. */
  commonHeaders: string[];
  cacheControlOf(path: string): string;
  typeOf(path: string): string;
  /** Whether the file may have compressed forms (`x.br`, `x.gz`) stored beside it. */
  hasCompressedForms(path: string): boolean;
  /** A file up to this size is kept in memory; a larger one is read from disk for each response. */
  maxBytesInMemory(path: string): number;
}

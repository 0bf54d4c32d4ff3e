// Looking up files of a site: small ones are kept in memory, large ones are opened for each answer. An entry is never older
// than the turn of the event loop it is used in: one look at the file system serves all requests that came in together.
import { createHash } from 'node:crypto';
import { constants, type Stats, statSync } from 'node:fs';
import { open, readFile, realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { isText } from '../compress.ts';
import { type Encoding, suffixOf } from './encoding.ts';
import { cacheControl, classOf, commonHeaders, typeOf } from './header-rules.ts';

/** A path of the site, as it is or in a compressed form that is stored beside it. */
export interface Form {
  path: string;
  encoding: Encoding | undefined;
}

export interface SiteFile {
  /** With every link in it followed: surely inside the site. */
  realPath: string;
  size: number;
  mtimeMs: number;
  etag: string;
  type: string;
  /** The whole file, where it is small. */
  bytes: Buffer | null;
  /** What every answer with this file says, flat, as writeHead takes it. */
  headers: string[];
  /** The same for the whole file, complete. */
  wholeHeaders: string[];
}

/**
 * Texts are kept whole up to a size no catalogue reaches, because they are replaced by a publish: an answer must not begin
 * with one and end with the next. Media never changes.
 */
const smallBytes = (path: string) => (isText(path) ? 16 * 1024 * 1024 : 256 * 1024);
const MEMORY_BYTES = 64 * 1024 * 1024;
/** A pipe or device in the site must not hold up the one who opens it. */
const READ_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;

interface Known {
  stamp: string;
  file: SiteFile | null;
}

const keyOf = ({ path, encoding }: Form) => (encoding === undefined ? path : `${encoding} ${path}`);
const stampOf = (facts: Stats) => `${facts.ino} ${facts.size} ${facts.mtimeMs} ${facts.ctimeMs}`;

interface Facts {
  size: number;
  mtimeMs: number;
}

function describe(form: Form, realPath: string, { size, mtimeMs }: Facts, bytes: Buffer | null): SiteFile {
  const { path, encoding } = form;
  // Of the content where it is at hand, so that it is the same on every machine that serves the same site.
  const digest = bytes && createHash('sha256').update(bytes).digest('base64url').slice(0, 27);
  const etag = `"${digest ?? `${size.toString(16)}-${Math.round(mtimeMs * 1000).toString(16)}`}"`;
  const type = typeOf(path);
  const headers = [
    ...commonHeaders.flat(),
    ...['Cache-Control', cacheControl[classOf(path)], 'ETag', etag, 'Last-Modified', new Date(mtimeMs).toUTCString()],
    ...['Accept-Ranges', 'bytes', ...(isText(path) ? ['Vary', 'Accept-Encoding'] : [])],
  ];
  const about = ['Content-Type', type, 'Content-Length', String(size)];
  const coded = encoding === undefined ? [] : ['Content-Encoding', encoding];
  return { realPath, size, mtimeMs, etag, type, bytes, headers, wholeHeaders: [...headers, ...about, ...coded] };
}

export class SiteFiles {
  #root: string;
  #known = new Map<string, Known>();
  #keptBytes = 0;
  /** Looked at in this turn of the loop. */
  #fresh = new Map<string, SiteFile | null>();

  constructor(root: string) {
    this.#root = root;
  }

  /** The file, if it is known and unchanged; undefined where `load` has to look. */
  recall(form: Form): SiteFile | null | undefined {
    const key = keyOf(form);
    const fresh = this.#fresh.get(key);
    if (fresh !== undefined) return fresh;
    const known = this.#known.get(key);
    if (known === undefined) return undefined;
    const facts = statSync(this.#fileOf(form), { throwIfNoEntry: false });
    if (facts === undefined || stampOf(facts) !== known.stamp) return undefined;
    this.#remember(key, known.file);
    return known.file;
  }

  #fileOf({ path, encoding }: Form): string {
    return join(this.#root, encoding === undefined ? path : path + suffixOf[encoding]);
  }

  /** The file as it is now, or null where the site has none at that path. */
  async load(form: Form): Promise<SiteFile | null> {
    const found = await this.#read(form);
    this.#keep(keyOf(form), found);
    this.#remember(keyOf(form), found?.file ?? null);
    return found?.file ?? null;
  }

  #remember(key: string, file: SiteFile | null): void {
    if (this.#fresh.size === 0) setImmediate(() => this.#fresh.clear());
    this.#fresh.set(key, file);
  }

  async #read(form: Form): Promise<Known | null> {
    try {
      const [root, real] = await Promise.all([realpath(this.#root), realpath(this.#fileOf(form))]);
      if (!real.startsWith(root + sep)) return null;
      const handle = await open(real, READ_FLAGS);
      try {
        const facts = await handle.stat();
        if (!facts.isFile()) return null;
        const bytes = facts.size <= smallBytes(form.path) ? await readFile(handle) : null;
        const size = bytes?.length ?? facts.size;
        return { stamp: stampOf(facts), file: describe(form, real, { size, mtimeMs: facts.mtimeMs }, bytes) };
      } finally {
        await handle.close();
      }
    } catch {
      // Missing, not readable, a loop of links, a name too long: in every case there is no such file for a reader.
      return null;
    }
  }

  #keep(key: string, known: Known | null): void {
    const before = this.#known.get(key);
    if (before !== undefined) this.#keptBytes -= weight(before);
    this.#known.delete(key);
    if (known === null) return;
    this.#known.set(key, known);
    this.#keptBytes += weight(known);
    // A Map keeps the order of insertion: the first is the one longest there.
    for (const [oldest, entry] of this.#known) {
      if (this.#keptBytes <= MEMORY_BYTES) break;
      this.#known.delete(oldest);
      this.#keptBytes -= weight(entry);
    }
  }
}

/** An entry costs something even without its bytes. */
const weight = (known: Known) => (known.file?.bytes?.length ?? 0) + 1024;

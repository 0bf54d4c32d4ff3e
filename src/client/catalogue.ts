// Reads a catalogue: catalogue('https://media.example.com').streams(). No dependencies; works in Node and in browsers.

/** The version of the document that this client understands. */
const KNOWN_VERSION = 2;
const MAX_DOCUMENT_BYTES = 64 * 1024 * 1024;

export interface CatalogueRendition {
  label: string;
  width: number;
  height: number;
  video_kbps: number;
  audio_kbps: number;
}

export interface CatalogueStream {
  id: string;
  title: string;
  fps: number;
  duration_s: number;
  /** Rendition label → absolute URL. Not every stream has every rendition. */
  progressive: Record<string, string>;
  /** Absolute URL of the multivariant playlist, or null. */
  hls: string | null;
  /** Fields added by later versions are kept unchanged; paths in them stay relative. */
  [added: string]: unknown;
}

export interface CatalogueDocument {
  version: number;
  updated: string;
  renditions: CatalogueRendition[];
  streams: CatalogueStream[];
}

export class CatalogueReadError extends Error {
  readonly code: 'unreachable' | 'bad_status' | 'bad_document' | 'unknown_version';

  constructor(code: CatalogueReadError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CatalogueReadError';
    this.code = code;
  }
}

export interface CatalogueOptions {
  /** For tests, proxies and caches; default the global one. */
  fetch?: typeof globalThis.fetch;
}

export interface Catalogue {
  /** The document, with every path as an absolute URL on the origin it came from. Downloaded again only if it changed. */
  document(signal?: AbortSignal): Promise<CatalogueDocument>;
  streams(signal?: AbortSignal): Promise<CatalogueStream[]>;
  /** Null if the catalogue has no stream with that id. */
  stream(id: string, signal?: AbortSignal): Promise<CatalogueStream | null>;
  /** SHA-256 in hexadecimal of a media file, by its URL or path; null if it is not listed. */
  checksum(path: string, signal?: AbortSignal): Promise<string | null>;
  /** Whether the origin answers. If it does and a media URL does not, the problem is the asset. */
  healthy(signal?: AbortSignal): Promise<boolean>;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function bad(message: string): never {
  throw new CatalogueReadError('bad_document', message);
}

function complete(path: unknown, origin: string): string {
  if (typeof path !== 'string' || !path.startsWith('/') || path.startsWith('//'))
    bad(`${String(path)} is not root-relative`);
  return new URL(path as string, origin).href;
}

function readStream(value: unknown, origin: string): CatalogueStream {
  if (!isRecord(value) || typeof value.id !== 'string') return bad('a stream has no id');
  const { id, title, fps, duration_s, progressive, hls } = value;
  if (typeof title !== 'string' || typeof fps !== 'number' || typeof duration_s !== 'number' || !isRecord(progressive))
    return bad(`stream ${id} lacks a field`);
  const files = Object.entries(progressive).map(([label, path]) => [label, complete(path, origin)] as const);
  return {
    ...value,
    id,
    title,
    fps,
    duration_s,
    progressive: Object.fromEntries(files),
    hls: hls === null ? null : complete(hls, origin),
  };
}

/** Checks a document and makes its paths absolute. Fetches nothing. */
export function readDocument(value: unknown, origin: string): CatalogueDocument {
  if (!isRecord(value) || typeof value.version !== 'number') return bad('there is no version');
  if (value.version !== KNOWN_VERSION)
    throw new CatalogueReadError('unknown_version', `version ${value.version} is not known to this client`);
  if (!Array.isArray(value.streams) || !Array.isArray(value.renditions) || typeof value.updated !== 'string')
    return bad('a field is missing');
  const streams = value.streams.map((stream) => readStream(stream, origin));
  return { ...value, version: value.version, updated: value.updated, renditions: value.renditions, streams };
}

class HttpCatalogue implements Catalogue {
  #base: URL;
  #fetch: typeof globalThis.fetch;
  #last: { etag: string; document: CatalogueDocument } | null = null;

  constructor(baseUrl: string, options: CatalogueOptions) {
    this.#base = new URL(baseUrl);
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
  }

  async #get(path: string, signal: AbortSignal | undefined, headers: Record<string, string> = {}): Promise<Response> {
    const url = new URL(path, this.#base.origin);
    try {
      return await this.#fetch(url, { headers, signal: signal ?? null });
    } catch (error) {
      signal?.throwIfAborted();
      throw new CatalogueReadError('unreachable', `${url} cannot be reached`, { cause: error });
    }
  }

  async document(signal?: AbortSignal): Promise<CatalogueDocument> {
    const headers: Record<string, string> = { accept: 'application/json' };
    if (this.#last !== null) headers['if-none-match'] = this.#last.etag;
    const response = await this.#get('/api/streams.json', signal, headers);
    if (response.status === 304 && this.#last !== null) return this.#last.document;
    if (!response.ok) throw new CatalogueReadError('bad_status', `the catalogue answered ${response.status}`);
    const text = await response.text();
    if (text.length > MAX_DOCUMENT_BYTES) bad('the document is too large');
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (error) {
      throw new CatalogueReadError('bad_document', 'the document is not JSON', { cause: error });
    }
    // After a redirect the paths belong to the origin that answered.
    const document = readDocument(value, new URL(response.url || this.#base).origin);
    const etag = response.headers.get('etag');
    this.#last = etag === null ? null : { etag, document };
    return document;
  }

  async streams(signal?: AbortSignal): Promise<CatalogueStream[]> {
    return (await this.document(signal)).streams;
  }

  async stream(id: string, signal?: AbortSignal): Promise<CatalogueStream | null> {
    return (await this.streams(signal)).find((stream) => stream.id === id) ?? null;
  }

  async checksum(path: string, signal?: AbortSignal): Promise<string | null> {
    const { pathname } = new URL(path, this.#base.origin);
    const response = await this.#get('/media/SHA256SUMS', signal);
    if (!response.ok) throw new CatalogueReadError('bad_status', `SHA256SUMS answered ${response.status}`);
    const line = (await response.text()).split('\n').find((each) => `/media/${each.slice(66)}` === pathname);
    return line?.slice(0, 64) ?? null;
  }

  async healthy(signal?: AbortSignal): Promise<boolean> {
    const response = await this.#get('/health.txt', signal).catch(() => null);
    return response?.ok === true && (await response.arrayBuffer()).byteLength === 3;
  }
}

export function catalogue(baseUrl: string, options: CatalogueOptions = {}): Catalogue {
  return new HttpCatalogue(baseUrl, options);
}

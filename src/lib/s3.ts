// The few calls of the S3 protocol that are needed here, signed by aws4fetch. Buckets are addressed by path where an endpoint is
// given (most compatible stores), by host name at AWS.
import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { AwsClient } from 'aws4fetch';
import type { S3Store } from './s3-address.ts';
import { S3Error } from './s3-error.ts';

export interface PutOptions {
  type: string;
  cacheControl: string;
  /** Of the content; kept with the object. */
  sha256: string;
  /** Of the bytes that are sent, which the store checks; where they are not the content itself. */
  bodySha256?: string | undefined;
  encoding?: 'gzip' | undefined;
  /** The object must not exist, or must still be the one with this tag. */
  condition?: { ifNoneMatch: '*' } | { ifMatch: string } | undefined;
}

export interface ListedObject {
  key: string;
  size: number;
  modifiedMs: number;
}

type PutResult = 'stored' | 'precondition-failed';

/** Larger objects are sent in parts; S3 takes at most 5 GiB in one request and 10,000 parts. */
const PART_BYTES = 64 * 1024 * 1024;
const MOST_PARTS = 9_000;

const MOST_TRIES = 5;
const FIRST_PAUSE_MS = 50;
/** What a store answers that is busy or in trouble for a moment. */
const isPassing = (status: number) => status >= 500 || status === 429;

/** The connection was lost in the middle: every call here can be made again. */
const resets = ['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'UND_ERR_SOCKET'];
function isReset(error: unknown): boolean {
  const cause = (error as Error).cause;
  return cause instanceof Error && 'code' in cause && resets.includes(String(cause.code));
}

const unescapeXml = (text: string) =>
  text.replace(
    /&(lt|gt|quot|apos|amp);/g,
    (_, name: string) => ({ lt: '<', gt: '>', quot: '"', apos: "'" })[name] ?? '&',
  );
const tag = (xml: string, name: string) => new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1];

export class S3 {
  #aws: AwsClient;
  #base: string;
  #signalOf: () => AbortSignal | null;

  /** `timeoutMs`: of each call; a call may be tried several times within it. */
  constructor(store: S3Store, { signal, timeoutMs }: { signal?: AbortSignal | undefined; timeoutMs?: number } = {}) {
    const { accessKeyId, secretAccessKey, sessionToken, region, bucket, endpoint } = store;
    const session = sessionToken === undefined ? {} : { sessionToken };
    this.#aws = new AwsClient({ accessKeyId, secretAccessKey, ...session, service: 's3', region });
    this.#base = endpoint
      ? `${endpoint.replace(/\/+$/, '')}/${bucket}`
      : `https://${bucket}.s3.${region}.amazonaws.com`;
    this.#signalOf = () => (timeoutMs === undefined ? (signal ?? null) : AbortSignal.timeout(timeoutMs));
  }

  async #call(method: string, key: string, headers: Record<string, string> = {}, body: Blob | string | null = null) {
    const address = `${this.#base}/${key}`;
    const signal = this.#signalOf();
    try {
      for (let tries = 1; ; tries++) {
        // Every header is signed, the conditions above all: nothing on the way can take them out.
        const request = await this.#aws.sign(address, { method, headers, body, aws: { allHeaders: true } });
        // The signal is given here and not in the request: one that only a request follows is lost with the next garbage collection.
        const response = await fetch(request, { signal }).catch((error) => {
          if (!isReset(error) || signal?.aborted || tries === MOST_TRIES) throw error;
          return null;
        });
        if (response !== null && (!isPassing(response.status) || tries === MOST_TRIES)) return response;
        await response?.body?.cancel();
        await pause(Math.random() * FIRST_PAUSE_MS * 2 ** (tries - 1), undefined, signal ? { signal } : {});
      }
    } catch (error) {
      signal?.throwIfAborted();
      const cause = (error as Error).cause;
      throw new S3Error(`${method} ${address}: ${cause instanceof Error ? cause.message : String(error)}`);
    }
  }

  async #fail(response: Response, method: string, key: string): Promise<never> {
    const xml = await response.text();
    throw new S3Error(`${method} ${key}: ${response.status} ${tag(xml, 'Code') ?? response.statusText}`);
  }

  /** What an object was stored with; null where there is no object. */
  async head(key: string): Promise<{ sha256: string | null; size: number; etag: string } | null> {
    const response = await this.#call('HEAD', key);
    if (response.status === 404) return null;
    if (!response.ok) return this.#fail(response, 'HEAD', key);
    return {
      sha256: response.headers.get('x-amz-meta-sha256'),
      size: Number(response.headers.get('content-length')),
      etag: response.headers.get('etag') ?? '',
    };
  }

  async get(key: string): Promise<{ etag: string; text: string } | null> {
    const response = await this.#call('GET', key);
    if (response.status === 404) return null;
    if (!response.ok) return this.#fail(response, 'GET', key);
    return { etag: response.headers.get('etag') ?? '', text: await response.text() };
  }

  /** The bytes of an object; null where there is none. */
  async read(key: string): Promise<Buffer | null> {
    const response = await this.#call('GET', key);
    if (response.status === 404) return null;
    if (!response.ok) return this.#fail(response, 'GET', key);
    return Buffer.from(await response.arrayBuffer());
  }

  async put(key: string, body: Blob, options: PutOptions): Promise<PutResult> {
    const about = {
      'Content-Type': options.type,
      'Cache-Control': options.cacheControl,
      'x-amz-meta-sha256': options.sha256,
      ...(options.encoding !== undefined && { 'Content-Encoding': options.encoding }),
    };
    const condition = conditionHeaders(options.condition);
    if (body.size > PART_BYTES)
      return this.#putInParts(key, body, about, condition, options.bodySha256 ?? options.sha256);
    const digest = { 'X-Amz-Content-Sha256': options.bodySha256 ?? options.sha256 };
    return this.#stored(await this.#call('PUT', key, { ...about, ...digest, ...condition }, body), 'PUT', key);
  }

  async #stored(response: Response, method: string, key: string): Promise<PutResult> {
    // 409 answers a conditional write that lost against another one at the same time.
    if (response.status === 412 || response.status === 409) return 'precondition-failed';
    if (!response.ok) return this.#fail(response, method, key);
    const xml = await response.text();
    // Joining parts can fail after the status line was sent.
    if (xml.includes('<Error>')) throw new S3Error(`${method} ${key}: ${tag(xml, 'Code')}`);
    return 'stored';
  }

  /** The store checks the digest of each part against the bytes that are sent; that of the whole is checked here. */
  async #putInParts(
    key: string,
    body: Blob,
    about: Record<string, string>,
    condition: Record<string, string>,
    sha256OfAll: string,
  ) {
    const begun = await this.#call('POST', `${key}?uploads=`, about);
    if (!begun.ok) return this.#fail(begun, 'POST', key);
    const upload = encodeURIComponent(tag(await begun.text(), 'UploadId') ?? '');
    try {
      const size = Math.max(PART_BYTES, Math.ceil(body.size / MOST_PARTS));
      const parts: string[] = [];
      const all = createHash('sha256');
      for (let at = 0; at < body.size; at += size) {
        const part = body.slice(at, at + size);
        const bytes = Buffer.from(await part.arrayBuffer());
        const sha256 = createHash('sha256').update(bytes).digest('hex');
        all.update(bytes);
        if (at + size >= body.size && all.digest('hex') !== sha256OfAll)
          throw new S3Error(`PUT ${key}: the file is damaged: its digest is not the one that it was published with`);
        const target = `${key}?partNumber=${parts.length + 1}&uploadId=${upload}`;
        const sent = await this.#call('PUT', target, { 'X-Amz-Content-Sha256': sha256 }, part);
        if (!sent.ok) return await this.#fail(sent, 'PUT', key);
        parts.push(`<Part><PartNumber>${parts.length + 1}</PartNumber><ETag>${sent.headers.get('etag')}</ETag></Part>`);
      }
      const list = `<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`;
      const joined = await this.#call('POST', `${key}?uploadId=${upload}`, condition, list);
      const result = await this.#stored(joined, 'POST', key);
      if (result !== 'stored') await this.#call('DELETE', `${key}?uploadId=${upload}`);
      return result;
    } catch (error) {
      // Parts of an upload that is never joined cost money until they are given up.
      await this.#call('DELETE', `${key}?uploadId=${upload}`).catch(() => {});
      throw error;
    }
  }

  async remove(key: string): Promise<void> {
    const response = await this.#call('DELETE', key);
    if (!response.ok && response.status !== 404) await this.#fail(response, 'DELETE', key);
  }

  /** Every object whose key starts with a prefix. */
  async list(prefix: string): Promise<ListedObject[]> {
    return (await Array.fromAsync(this.pages(prefix))).flat();
  }

  /** The same, at most a thousand at a time, in the order of their keys. */
  async *pages(prefix: string): AsyncGenerator<ListedObject[]> {
    for (let token: string | undefined = ''; token !== undefined; ) {
      const more: string = token === '' ? '' : `&continuation-token=${encodeURIComponent(token)}`;
      const response = await this.#call('GET', `?list-type=2&prefix=${encodeURIComponent(prefix)}${more}`);
      if (!response.ok) return this.#fail(response, 'GET', prefix);
      const xml = await response.text();
      yield Array.from(xml.matchAll(/<Contents>.*?<\/Contents>/gs), ([item]) => ({
        key: unescapeXml(tag(item, 'Key') ?? ''),
        size: Number(tag(item, 'Size')),
        modifiedMs: Date.parse(tag(item, 'LastModified') ?? ''),
      }));
      token = tag(xml, 'IsTruncated') === 'true' ? tag(xml, 'NextContinuationToken') : undefined;
    }
  }
}

function conditionHeaders(condition: PutOptions['condition']): Record<string, string> {
  if (condition === undefined) return {};
  return 'ifMatch' in condition ? { 'If-Match': condition.ifMatch } : { 'If-None-Match': condition.ifNoneMatch };
}

// What a request asks for, as HTTP defines it: its target and host, conditions, ranges, encodings. Pure functions of the
// headers; static-files.ts serves files by them.
import type { IncomingMessage } from 'node:http';

const maxTargetLength = 2048;

/**
 * The path relative to the site's root; null: it names no file. The target is decoded once, and one that could lead elsewhere
 * (a step up, a backslash, a dot file, an empty segment) names no file at all.
 */
export function requestPath(given: string | undefined): string | null {
  if (given === undefined || given.length > maxTargetLength) return null;
  const target = originForm(given);
  if (!target.startsWith('/')) return null;
  const end = target.search(/[?#]/);
  const raw = end === -1 ? target : target.slice(0, end);
  if (raw === '/') return 'index.html';
  let path = raw;
  if (raw.includes('%')) {
    try {
      path = decodeURIComponent(raw);
    } catch {
      return null;
    }
  }
  if (/[\0-\x1f\x7f\\]/.test(path) || path.includes('//') || path.includes('/.') || path.endsWith('/')) return null;
  return path.slice(1);
}

/** The absolute form of a target (RFC 9112, 3.2.2), which proxies send; a server has to take it like the path in it. */
const absoluteForm = /^https?:\/\/[^/?#]+/i;

/** The path and query of a target in absolute form; any other target itself. */
export function originForm(target: string): string {
  if (target.startsWith('/') || !absoluteForm.test(target)) return target;
  const rest = target.replace(absoluteForm, '');
  return rest.startsWith('/') ? rest : `/${rest}`;
}

// The Host header (RFC 9112, 3.2). A request has exactly one; with several, or one that is not a host, servers and caches on
// the way could disagree about what was asked for. Such a request is answered with 400.

const host = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-f:.]+\])(?::\d*)?$/i;

/** Requests keep coming with the same few hosts: the last valid one is not parsed again. */
let lastValid = '';

function isHost(value: string): boolean {
  if (value === lastValid) return true;
  if (!host.test(value)) return false;
  lastValid = value;
  return true;
}

/** Node has answered a request of HTTP/1.1 without the header itself, and keeps the first of several. */
export function hasOneHost({ rawHeaders, headers }: IncomingMessage): boolean {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (name.length === 4 && name.toLowerCase() === 'host') count++;
  }
  return count <= 1 && (headers.host === undefined || isHost(headers.host));
}

// Conditional requests (RFC 9110, 13): does the client already have the file, and does its range belong to this version?

interface Validators {
  etag: string;
  mtimeMs: number;
}

export type Conditions = Partial<
  Record<'if-match' | 'if-none-match' | 'if-modified-since' | 'if-unmodified-since' | 'if-range', string>
>;

const seconds = (ms: number) => Math.floor(ms / 1000);

/** Whether a header of conditions lists the tag. */
export function listsTag(header: string, etag: string, weakly: boolean): boolean {
  if (header.trim() === '*') return true;
  return header.split(',').some((part) => {
    const tag = part.trim();
    return tag === etag || (weakly && tag === `W/${etag}`);
  });
}

function unchangedSince(header: string, mtimeMs: number): boolean | null {
  const time = Date.parse(header);
  return Number.isNaN(time) ? null : seconds(mtimeMs) <= seconds(time);
}

export function evaluate(headers: Conditions, { etag, mtimeMs }: Validators): 'send' | 'not-modified' | 'failed' {
  if (headers['if-match'] !== undefined) {
    if (!listsTag(headers['if-match'], etag, false)) return 'failed';
  } else if (headers['if-unmodified-since'] !== undefined) {
    if (unchangedSince(headers['if-unmodified-since'], mtimeMs) === false) return 'failed';
  }
  if (headers['if-none-match'] !== undefined) {
    return listsTag(headers['if-none-match'], etag, true) ? 'not-modified' : 'send';
  }
  const since = headers['if-modified-since'];
  return since !== undefined && unchangedSince(since, mtimeMs) === true ? 'not-modified' : 'send';
}

/** Whether to honour a Range header: always without If-Range, otherwise only if the client has this version. */
export function honoursRange(ifRange: string | undefined, { etag, mtimeMs }: Validators): boolean {
  if (ifRange === undefined) return true;
  if (ifRange.startsWith('"') || ifRange.startsWith('W/')) return ifRange === etag;
  const time = Date.parse(ifRange);
  return !Number.isNaN(time) && seconds(time) === seconds(mtimeMs);
}

// The Range header (RFC 9110, 14). A header that cannot be parsed, or asks for too much, is ignored: the whole file is sent.
export interface ByteRange {
  start: number;
  /** Last byte, inclusive. */
  end: number;
}

type RangeAnswer = { kind: 'whole' } | { kind: 'unsatisfiable' } | { kind: 'parts'; parts: ByteRange[] };

export const maxRanges = 16;
const whole: RangeAnswer = { kind: 'whole' };

function parsePart(text: string, size: number): ByteRange | 'invalid' | 'outside' {
  const match = /^(\d{0,15})-(\d{0,15})$/.exec(text);
  if (match === null || (match[1] === '' && match[2] === '')) return 'invalid';
  if (match[1] === '') {
    const length = Math.min(Number(match[2]), size);
    return length === 0 ? 'outside' : { start: size - length, end: size - 1 };
  }
  const start = Number(match[1]);
  const end = match[2] === '' ? size - 1 : Math.min(Number(match[2]), size - 1);
  if (match[2] !== '' && Number(match[2]) < start) return 'invalid';
  return start >= size ? 'outside' : { start, end };
}

export function parseRange(header: string | undefined, size: number): RangeAnswer {
  if (header === undefined || header.length > 1024) return whole;
  const match = /^bytes=(.+)$/i.exec(header.trim());
  if (match === null) return whole;
  const texts = match[1]!.split(',').map((text) => text.trim());
  if (texts.length > maxRanges) return whole;
  const parts: ByteRange[] = [];
  for (const text of texts) {
    const part = parsePart(text, size);
    if (part === 'invalid') return whole;
    if (part !== 'outside') parts.push(part);
  }
  if (parts.length === 0) return { kind: 'unsatisfiable' };
  // Overlapping ranges that add up to more than the file are an attack or a mistake: the whole file is shorter.
  const total = parts.reduce((sum, part) => sum + part.end - part.start + 1, 0);
  return parts.length > 1 && total > size ? whole : { kind: 'parts', parts };
}

// Accept-Encoding (RFC 9110, 12.5.3) → the encodings that the client accepts, of those that files are stored in, best first.
export type Encoding = 'br' | 'gzip';

export const suffixOf: Record<Encoding, '.br' | '.gz'> = { br: '.br', gzip: '.gz' };

function quality(header: string, name: Encoding): number {
  let any = 0;
  for (const part of header.split(',')) {
    const [coding, ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase());
    const q = parameters.find((parameter) => parameter.startsWith('q='));
    const value = q === undefined ? 1 : Number(q.slice(2)) || 0;
    if (coding === name) return value;
    if (coding === '*') any = value;
  }
  return any;
}

/** Browsers keep sending the same few headers: each is parsed once. */
const parsed = new Map<string, Encoding[]>();
const maxParsed = 200;
const none: Encoding[] = [];

export function acceptedEncodings(header: string | undefined): Encoding[] {
  if (header === undefined || header.length > 1024) return none;
  const known = parsed.get(header);
  if (known !== undefined) return known;
  const accepted = parse(header);
  if (parsed.size < maxParsed) parsed.set(header, accepted);
  return accepted;
}

function parse(header: string): Encoding[] {
  return (['br', 'gzip'] as const)
    .map((name) => ({ name, q: quality(header, name) }))
    .filter(({ q }) => q > 0)
    .sort((a, b) => b.q - a.q)
    .map(({ name }) => name);
}

// Conditional requests (RFC 9110, 13): does the client already have the file, and does its range belong to this version?
interface Validators {
  etag: string;
  mtimeMs: number;
}

export type Conditions = Partial<
  Record<'if-match' | 'if-none-match' | 'if-modified-since' | 'if-unmodified-since' | 'if-range', string>
>;

const seconds = (ms: number) => Math.floor(ms / 1000);

function lists(header: string, etag: string, weakly: boolean): boolean {
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
    if (!lists(headers['if-match'], etag, false)) return 'failed';
  } else if (headers['if-unmodified-since'] !== undefined) {
    if (unchangedSince(headers['if-unmodified-since'], mtimeMs) === false) return 'failed';
  }
  if (headers['if-none-match'] !== undefined) {
    return lists(headers['if-none-match'], etag, true) ? 'not-modified' : 'send';
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

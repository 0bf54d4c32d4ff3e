// Which revision and which instance a request goes to. A visitor has a bucket, kept in a cookie; a canary has a range
// of buckets as long as its percentage, which grows at one end only. So raising the percentage moves visitors to the
// canary and never back. Where the range begins depends on the canary's revision, so that the same visitors are not
// always first. Nothing here does I/O.

export const buckets = 10_000;
const stickyCookie = 'sluice_revision';

const cookieStart = `${stickyCookie}=`;
const goldenStep = 0x9e3779b9; // 2^32 divided by the golden ratio
/** The number of buckets divided by the golden ratio, rounded to a number coprime to it. */
export const rotationStep = 6181;

/** The visitor's bucket from a Cookie header, or -1 where the header has none, or none that is valid. */
export function bucketOfCookies(header: string): number {
  let at = header.indexOf(cookieStart);
  while (at !== -1) {
    const before = at === 0 ? ';' : header[at - 1];
    const from = at + cookieStart.length;
    if (before === ';' || before === ' ') {
      const bucket = parseBucket(header, from);
      if (bucket !== -1) return bucket;
    }
    at = header.indexOf(cookieStart, from);
  }
  return -1;
}

function parseBucket(header: string, from: number): number {
  let bucket = 0;
  let at = from;
  for (; at < header.length && header[at] !== ';'; at++) {
    const digit = header.charCodeAt(at) - 48;
    if (digit < 0 || digit > 9 || at - from >= 4) return -1;
    bucket = bucket * 10 + digit;
  }
  return at === from ? -1 : bucket;
}

export const cookieOf = (bucket: number): string =>
  `${stickyCookie}=${bucket}; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax`;

/**
 * Buckets for visitors that have none: multiples of the golden ratio from a start in [0, 1). They are spread so evenly
 * that any run of requests gets almost exactly its share of the canary.
 */
export function createBuckets(start: number): () => number {
  let state = Math.floor(start * 2 ** 32) >>> 0;
  return () => {
    state = (state + goldenStep) >>> 0;
    return Math.floor((state / 2 ** 32) * buckets);
  };
}

/** What is added to a visitor's bucket before it is compared with the canary's limit. */
export const canaryOffset = (revision: number): number => (revision * rotationStep) % buckets;

/** How many buckets see the canary. */
export const canaryLimit = (percent: number): number => Math.round((percent * buckets) / 100);

/** Whether a visitor sees the canary. */
export const seesCanary = (bucket: number, revision: number, percent: number): boolean =>
  (bucket + canaryOffset(revision)) % buckets < canaryLimit(percent);

export interface Candidate {
  /** Requests under way. */
  underWay: number;
  /** By the steady clock. It failed to accept a connection, and is skipped until then. */
  ejectedUntil: number;
}

/** The index of the candidate with the fewest requests under way, ties in turn; -1 where none is left. */
export function pickCandidate<C extends Candidate>(
  candidates: readonly C[],
  turn: number,
  nowMs: number,
  tried: readonly C[],
): number {
  let best = -1;
  const count = candidates.length;
  for (let i = 0; i < count; i++) {
    const index = (turn + i) % count;
    const candidate = candidates[index]!;
    if (candidate.ejectedUntil > nowMs || (tried.length > 0 && tried.includes(candidate))) continue;
    if (best === -1 || candidate.underWay < candidates[best]!.underWay) best = index;
  }
  return best;
}

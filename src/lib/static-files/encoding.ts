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

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

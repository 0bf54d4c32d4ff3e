// How much room texts take on a terminal, and aligned columns of them. On a terminal that is too narrow, columns that can
// be done without are left out first, then the widest of the others are cut until a line fits; what people copy, ids and
// images, is never cut. Elsewhere nothing is cut. Texts come from other people: codes that move the cursor or change colours are
// removed before anything is shown.
import { stripVTControlCharacters } from 'node:util';

const segmenter = new Intl.Segmenter();
const wide =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{20000}-\u{3fffd}]/u;
const plain = /^[\x20-\x7e]*$/;

/** Without control characters; a tab becomes a space. */
export const clean = (text: string): string =>
  plain.test(text)
    ? text
    : stripVTControlCharacters(text)
        .replaceAll(/[\t\n\r]+/g, ' ')
        .replaceAll(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, '');

const cellsOf = (segment: string): number => (wide.test(segment) ? 2 : 1);

/** Columns the text takes; colours take none. */
export function widthOf(text: string): number {
  if (plain.test(text)) return text.length;
  let columns = 0;
  for (const { segment } of segmenter.segment(stripVTControlCharacters(text))) columns += cellsOf(segment);
  return columns;
}

export const pad = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - widthOf(text)));

const colour = /\x1b\[[0-9;]*m/y;

/** Cuts a text to a width and ends it with …; colour codes stay whole, and colours are switched off at the end. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  if (width < 1) return '';
  let shown = '';
  let columns = 0;
  let painted = false;
  for (let at = 0; at < text.length; ) {
    colour.lastIndex = at;
    const code = colour.exec(text)?.[0];
    if (code !== undefined) {
      shown += code;
      painted = true;
      at += code.length;
      continue;
    }
    const [next] = segmenter.segment(text.slice(at, at + 32));
    const { segment } = next!;
    if (columns + cellsOf(segment) > width - 1) break;
    shown += segment;
    columns += cellsOf(segment);
    at += segment.length;
  }
  return `${shown}…${painted ? '\x1b[0m' : ''}`;
}

/** A text in lines of at most this width, broken at blanks; a word that is wider has a line of its own. */
export function wrap(text: string, width: number, firstWidth = width): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const line = lines.at(-1);
    const room = lines.length === 1 ? firstWidth : width;
    if (line !== undefined && widthOf(line) + 1 + widthOf(word) <= room) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/**
 * A line that goes on below, indented, where the terminal is too narrow for it; less so before a word that would not fit otherwise,
 * such as a digest. A list of commands is broken between them.
 */
export function fold(text: string, columns: number | null, indent: number): string[] {
  if (columns === null || widthOf(text) <= columns) return [text];
  const [first, ...rest] = wrap(unbroken(text, columns - indent), columns - indent, columns).map((line) =>
    line.replaceAll('\u00a0', ' '),
  );
  const indented = (line: string) => ' '.repeat(Math.max(0, Math.min(indent, columns - widthOf(line)))) + line;
  return [first!.trimEnd(), ...rest.map((line) => indented(line.trim()))];
}

/** What stands between dots stays together where all of it fits. */
function unbroken(text: string, width: number): string {
  const parts = text.split(' · ');
  if (parts.some((part) => widthOf(part) + 2 > width)) return text;
  return parts.map((part) => part.replaceAll(' ', '\u00a0')).join('\u00a0· ');
}

export interface Cell {
  text: string;
  /** Puts colour on the text once its width is settled. */
  paint?: (text: string) => string;
}

interface Layout {
  /** Columns of the terminal; null: no limit. */
  columns: number | null;
  /** Columns that are aligned right. */
  right?: ReadonlySet<number>;
  /** Columns that are never cut. */
  whole?: ReadonlySet<number>;
}

const gap = 2;
const narrowest = 6;

export function layOut(rows: Cell[][], { columns, right, whole }: Layout): string[] {
  const widths = fit(naturalWidths(rows), columns, whole);
  return rows.map((row) =>
    row
      .map((cell, index) => {
        const width = widths[index]!;
        const shown = cut(cell.text, width);
        const last = index === row.length - 1;
        const space = ' '.repeat(Math.max(0, width - widthOf(shown)));
        const painted = cell.paint ? cell.paint(shown) : shown;
        if (right?.has(index)) return space + painted;
        return last ? painted : painted + space;
      })
      .join(' '.repeat(gap))
      .trimEnd(),
  );
}

function naturalWidths(rows: Cell[][]): number[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, widthOf(cell.text));
  }
  return widths;
}

/**
 * The columns that are shown, by their index: while a line does not fit, the one of `optional` with the highest number is
 * left out next.
 */
export function columnsThatFit(
  rows: Cell[][],
  columns: number | null,
  optional: ReadonlyMap<number, number>,
): number[] {
  const widths = naturalWidths(rows);
  const shown = new Set(widths.keys());
  const leavers = [...optional.keys()].sort((a, b) => optional.get(b)! - optional.get(a)!);
  while (columns !== null && leavers.length > 0) {
    const total = [...shown].reduce((sum, index) => sum + widths[index]!, 0) + gap * (shown.size - 1);
    if (total < columns) break;
    shown.delete(leavers.shift()!);
  }
  return [...shown];
}

function fit(widths: number[], columns: number | null, whole: ReadonlySet<number> = new Set()): number[] {
  if (columns === null) return widths;
  const fitted = [...widths];
  const room = columns - 1 - gap * (widths.length - 1);
  let over = fitted.reduce((sum, width) => sum + width, 0) - room;
  while (over > 0) {
    const widest = Math.max(0, ...fitted.filter((_, index) => !whole.has(index)));
    if (widest <= narrowest) break;
    const next = Math.max(narrowest, ...fitted.filter((width, index) => width < widest && !whole.has(index)));
    const those = fitted.flatMap((width, index) => (width === widest && !whole.has(index) ? [index] : []));
    const less = Math.min(widest - next || 1, Math.ceil(over / those.length));
    for (const index of those) fitted[index] = widest - Math.min(less, widest - narrowest);
    over -= less * those.length;
  }
  return fitted;
}

/** `name  value` lines with the values below each other. */
export function pairs(entries: [name: string, value: string][], columns: number | null = null): string[] {
  const width = Math.max(0, ...entries.map(([name]) => widthOf(name)));
  return entries.flatMap(([name, value]) => fold(`${pad(name, width)}  ${value}`.trimEnd(), columns, width + gap));
}

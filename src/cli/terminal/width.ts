// How much room a text takes on a terminal, and how to make it take less. Texts come from other people: codes that
// move the cursor or change colours are removed before anything is shown.
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

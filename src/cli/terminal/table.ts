// Aligned columns. On a terminal the widest columns give way until a line fits; elsewhere nothing is cut.
import { cut, pad, widthOf } from './width.ts';

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
}

const gap = 2;
const narrowest = 6;

export function layOut(rows: Cell[][], { columns, right }: Layout): string[] {
  const widths = fit(naturalWidths(rows), columns);
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

function fit(widths: number[], columns: number | null): number[] {
  if (columns === null) return widths;
  const fitted = [...widths];
  const room = columns - 1 - gap * (widths.length - 1);
  let over = fitted.reduce((sum, width) => sum + width, 0) - room;
  while (over > 0) {
    const widest = Math.max(...fitted);
    if (widest <= narrowest) break;
    const next = Math.max(narrowest, ...fitted.filter((width) => width < widest));
    const those = fitted.flatMap((width, index) => (width === widest ? [index] : []));
    const less = Math.min(widest - next || 1, Math.ceil(over / those.length));
    for (const index of those) fitted[index] = widest - Math.min(less, widest - narrowest);
    over -= less * those.length;
  }
  return fitted;
}

/** `name  value` lines with the values below each other. */
export function pairs(entries: [name: string, value: string][]): string[] {
  const width = Math.max(0, ...entries.map(([name]) => widthOf(name)));
  return entries.map(([name, value]) => `${pad(name, width)}  ${value}`.trimEnd());
}

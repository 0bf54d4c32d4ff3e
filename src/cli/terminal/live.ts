// A few lines at the bottom of a terminal that are drawn again in place. Each redraw is one write that overwrites and
// then erases what is left over, so nothing flickers. Lines that stay are printed above them.
import type { Sink } from '../io.ts';
import { cut } from './table.ts';

const hideCursor = '\x1b[?25l';
const showCursor = '\x1b[?25h';
const beginUpdate = '\x1b[?2026h';
const endUpdate = '\x1b[?2026l';
const eraseLine = '\x1b[K';
const eraseBelow = '\x1b[J';

export class Live {
  readonly #sink: Sink;
  #drawn = 0;
  #isOpen = false;

  constructor(sink: Sink) {
    this.#sink = sink;
  }

  /** Replaces the lines drawn before; `above` is printed above them and stays. */
  draw(lines: string[], above: string[] = []): void {
    const columns = (this.#sink.columns || 80) - 1;
    const rows = Math.max(1, (this.#sink.rows || 24) - 1);
    const shown = lines.slice(0, rows);
    // Lines that stay may wrap. Redrawn ones may not: the cursor goes back by their number.
    const text = [...above, ...shown.map((line) => cut(line, columns))].map((line) => `${line}${eraseLine}\n`).join('');
    this.#sink.write(`${beginUpdate}${this.#isOpen ? '' : hideCursor}${this.#back()}${text}${eraseBelow}${endUpdate}`);
    this.#drawn = shown.length;
    this.#isOpen = true;
  }

  /** Takes the lines away and gives the cursor back. */
  end(): void {
    if (!this.#isOpen) return;
    this.#sink.write(`${this.#back()}${eraseBelow}${showCursor}`);
    this.#drawn = 0;
    this.#isOpen = false;
  }

  #back(): string {
    return this.#drawn > 0 ? `\r\x1b[${this.#drawn}A` : '\r';
  }
}

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

export const frameAt = (nowMs: number): string => frames[Math.floor(nowMs / 100) % frames.length]!;

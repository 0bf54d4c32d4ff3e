// What a command prints: results on standard output, as JSON with --json; messages on standard error. Colours only
// on a terminal, or where FORCE_COLOR asks for them.
import { styleText } from 'node:util';
import type { Io, Sink } from '../io.ts';
import { ago } from './quantities.ts';
import { type Cell, layOut } from './table.ts';
import { clean } from './width.ts';

export type Colour = 'green' | 'red' | 'yellow' | 'cyan' | 'dim' | 'bold';

interface Column<T> {
  title: string;
  of(item: T): string | number | null;
  colour?(item: T): Colour | undefined;
  right?: true;
}

export interface Output {
  readonly json: boolean;
  readonly quiet: boolean;
  /** Standard error is a terminal that can be redrawn. */
  readonly isLive: boolean;
  /** The width of standard output; null where it is no terminal, and nothing is cut. */
  readonly columns: number | null;
  readonly paint: Paint;
  /** A time: how long ago on a terminal, as it is elsewhere. */
  time(iso: string | null): string;
  line(text?: string): void;
  note(text: string): void;
  /** The result: as JSON with --json, else as `print` prints it. */
  result(value: unknown, print: () => void): void;
  /** One line of JSON, for things that are followed. */
  jsonLine(value: unknown): void;
  /** The result as a table; `empty` says what to do where there is nothing. */
  list<T>(items: T[], columns: Column<T>[], empty: string): void;
}

export function hasColours(env: Io['env'], stream: Sink): boolean {
  const forced = env.FORCE_COLOR;
  if (forced !== undefined) return forced !== '0' && forced !== 'false';
  if (env.NO_COLOR) return false;
  return stream.isTTY === true && env.TERM !== 'dumb';
}

export type Paint = (colour: Colour, text: string) => string;

export function painter(env: Io['env'], stream: Sink): Paint {
  const colours = hasColours(env, stream);
  return (colour, text) => (colours && text !== '' ? styleText(colour, text, { validateStream: false }) : text);
}

const narrowest = 40;

export function columnsOf(stream: Sink): number {
  return Math.max(narrowest, stream.columns || 80);
}

const stateColours: Record<string, Colour> = {
  succeeded: 'green',
  active: 'green',
  enabled: 'green',
  resolved: 'green',
  healthy: 'green',
  failed: 'red',
  rolled_back: 'red',
  disabled: 'red',
  firing: 'red',
  aborting: 'red',
  canceled: 'dim',
  superseded: 'dim',
  retired: 'dim',
};

export const colourOf = (state: string): Colour => stateColours[state] ?? 'yellow';

export function createOutput(io: Io, json: boolean, quiet: boolean): Output {
  const { env, stdout, stderr } = io;
  const columns = stdout.isTTY ? columnsOf(stdout) : null;
  const paint = painter(env, stdout);
  const line = (text = '') => void stdout.write(`${text}\n`);
  const result = (value: unknown, print: () => void) => {
    if (json) line(JSON.stringify(value, null, stdout.isTTY ? 2 : undefined));
    else print();
  };
  const note = (text: string) => {
    if (!quiet) stderr.write(`${text}\n`);
  };
  return {
    json,
    quiet,
    isLive: stderr.isTTY === true && env.TERM !== 'dumb' && !json && !quiet,
    columns,
    paint,
    time: (iso) => (iso === null ? '-' : columns === null ? iso : ago(iso, io.now())),
    line,
    note,
    result,
    jsonLine: (value) => line(JSON.stringify(value)),
    list(items, columnList, empty) {
      result(items, () => {
        if (items.length === 0) return note(empty);
        const head = columnList.map(({ title }): Cell => ({ text: title, paint: (text) => paint('dim', text) }));
        const rows = items.map((item) => columnList.map((column) => cellOf(column, item, paint)));
        const right = new Set(columnList.flatMap((column, index) => (column.right ? [index] : [])));
        for (const text of layOut([head, ...rows], { columns, right })) line(text);
      });
    },
  };
}

function cellOf<T>(column: Column<T>, item: T, paint: Paint): Cell {
  const value = column.of(item);
  const colour = column.colour?.(item);
  const text = value === null || value === '' ? '-' : clean(String(value));
  return { text, ...(colour && { paint: (shown) => paint(colour, shown) }) };
}

// What a command prints: results on standard output, as JSON with --json; messages on standard error. Colours only
// on a terminal, or where FORCE_COLOR asks for them. Also how states, durations, times, rates and counts are written.
import { styleText } from 'node:util';
import type { Environment } from '../../contract/environments.ts';
import type { Io, Sink } from '../io.ts';
import { type Cell, clean, columnsThatFit, fold, layOut } from './table.ts';

export type Colour = 'green' | 'red' | 'yellow' | 'cyan' | 'dim' | 'bold';

interface Column<T> {
  title: string;
  of(item: T): string | number | null;
  colour?(item: T): Colour | undefined;
  right?: true;
  /** People copy it: never cut, however narrow the terminal is. */
  whole?: true;
  /** Left out where the terminal is too narrow, the highest number first. */
  optional?: number;
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
  /** `indent`: where the terminal is too narrow, the line goes on below, indented by so much. */
  line(text?: string, indent?: number): void;
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
  const line = (text = '', indent?: number) => {
    for (const part of indent === undefined ? [text] : fold(text, columns, indent)) stdout.write(`${part}\n`);
  };
  const result = (value: unknown, print: () => void) => {
    if (json) line(escapeControls(JSON.stringify(value, null, stdout.isTTY ? 2 : undefined)));
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
    jsonLine: (value) => line(escapeControls(JSON.stringify(value))),
    list(items, columnList, empty) {
      result(items, () => {
        if (items.length === 0) return note(empty);
        const head = columnList.map(({ title }): Cell => ({ text: title, paint: (text) => paint('dim', text) }));
        const rows = items.map((item) => columnList.map((column) => cellOf(column, item, paint)));
        const optional = new Map(columnList.flatMap(({ optional: rank }, index) => (rank ? [[index, rank]] : [])));
        const shown = columnsThatFit([head, ...rows], columns, optional);
        const where = (is: (column: (typeof columnList)[number]) => unknown) =>
          new Set(shown.flatMap((index, at) => (is(columnList[index]!) ? [at] : [])));
        const layout = { columns, right: where((column) => column.right), whole: where((column) => column.whole) };
        const cells = [head, ...rows].map((row) => shown.map((index) => row[index]!));
        for (const text of layOut(cells, layout)) line(text);
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

type Health = Environment['health'];

const healthColours: Record<Health['state'], Colour> = {
  healthy: 'green',
  degraded: 'yellow',
  down: 'red',
  idle: 'dim',
};

export const healthColour = ({ state }: Health): Colour => healthColours[state];

/** A line about an environment that does not serve as it should; null: it does. */
export function healthLine(where: string, health: Health, out: Pick<Output, 'paint' | 'time'>): string | null {
  const { state, since, reason } = health;
  if (state === 'healthy' || state === 'idle') return null;
  const what = out.paint(healthColour(health), state);
  return `${where} is ${what} since ${out.time(since)}${reason === null ? '' : `: ${clean(reason)}`}`;
}

export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** For what takes seconds: `1.8 s`. */
export const spanInTenths = (ms: number): string => (ms < 9950 ? `${(Math.max(0, ms) / 1000).toFixed(1)} s` : span(ms));

/** What is left of a time, as a clock shows it: `3:12`. */
export function clock(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const padded = (value: number) => String(value).padStart(2, '0');
  return `${hours > 0 ? `${hours}:${padded(minutes)}` : minutes}:${padded(seconds % 60)}`;
}

export function ago(iso: string | null, now: number): string {
  if (iso === null) return '-';
  const seconds = Math.round((now - Date.parse(iso)) / 1000);
  if (seconds === 0) return 'just now';
  if (seconds < 0)
    return `in ${span(-seconds * 1000)
      .split(' ')
      .slice(0, 2)
      .join(' ')}`;
  return `${span(seconds * 1000)
    .split(' ')
    .slice(0, 2)
    .join(' ')} ago`;
}

export const timeOfDay = (iso: string): string => new Date(iso).toTimeString().slice(0, 8);

export const percent = (rate: number | null): string => (rate === null ? '-' : `${(rate * 100).toFixed(1)} %`);

export const milliseconds = (ms: number | null): string => {
  if (ms === null) return '-';
  return ms < 10 ? `${ms.toFixed(1)} ms` : ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
};

export const count = (number: number): string => String(number).replaceAll(/\B(?=(\d{3})+$)/g, ',');

export const plural = (number: number, one: string, many = `${one}s`): string =>
  `${count(number)} ${number === 1 ? one : many}`;

/** JSON leaves these as they are, but terminals obey some of them: C1, and what turns the direction of text around. */
export const escapeControls = (json: string): string =>
  json.replaceAll(
    /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

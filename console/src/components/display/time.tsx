// Relative times. One timer updates all of them.
import { Cell, useCell } from '../../cell.ts';

const now = new Cell(Date.now());
setInterval(() => now.set(Date.now()), 1000);

export const useNow = (): number => useCell(now);

const units: [seconds: number, name: string][] = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
];

/** 7,350 s → "2 h 2 min": at most two units, the second only where the first is small. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const index = units.findIndex(([size]) => whole >= size);
  if (index === -1) return seconds > 0 ? 'less than 1 s' : '0 s';
  const [size, name] = units[index]!;
  const count = Math.floor(whole / size);
  const next = units[index + 1];
  const rest = next ? Math.floor((whole % size) / next[0]) : 0;
  return rest > 0 && count < 10 ? `${count} ${name} ${rest} ${next![1]}` : `${count} ${name}`;
}

/** One unit is enough: the exact time is there on hover. */
export function relative(at: number, nowMs: number): string {
  const seconds = Math.round((nowMs - at) / 1000);
  if (Math.abs(seconds) < 2) return seconds < 0 ? 'now' : 'just now';
  const [text] = /^\d+ \w+/.exec(duration(Math.abs(seconds)))!;
  return seconds > 0 ? `${text} ago` : `in ${text}`;
}

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });

export const dayOf = (at: string): string => day.format(new Date(at));

/** "3 min ago", with the time itself on hover; `isShort`: "3 min", for columns. */
export function Ago({ at, isShort = false }: { at: string; isShort?: boolean }) {
  const nowMs = useNow();
  return (
    <time dateTime={at} title={exact.format(new Date(at))}>
      {relative(Date.parse(at), nowMs).replace(isShort ? /^just | ago$/ : '', '')}
    </time>
  );
}

// Numbers and names as people say them.

/** One decimal below ten, none above. */
const short = (value: number): string => String(value < 10 ? Number(value.toFixed(1)) : Math.round(value));
const grouped = new Intl.NumberFormat('en');

export const count = (value: number): string => grouped.format(value);
export const percent = (value: number): string => {
  const hundredths = value * 100;
  return `${hundredths > 0 && hundredths < 1 ? Number(hundredths.toFixed(2)) : short(hundredths)} %`;
};
export const milliseconds = (value: number): string =>
  value >= 10_000 ? `${short(value / 1000)} s` : `${short(value)} ms`;
export const perSecond = (value: number): string =>
  value > 0 && value < 0.1
    ? `${Number((value * 60).toFixed(1))}/min`
    : `${value < 10 ? short(value) : grouped.format(Math.round(value))}/s`;
export const mebibyte = 1024 * 1024;
export const bytes = (value: number): string =>
  value >= 1024 * mebibyte ? `${short(value / 1024 / mebibyte)} GiB` : `${short(value / mebibyte)} MiB`;
export const cpus = (value: number): string => `${Number(value.toFixed(value < 0.1 ? 3 : 2))} CPU`;
export const plural = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;

/** `registry.example/team/shop:1.4` → `1.4`; a digest is cut. */
export function tagOf(image: string): string {
  const [name = '', digest] = image.split('@');
  const tag = /:([^/:]+)$/.exec(name)?.[1];
  return tag ?? (digest ? digest.slice(7, 19) : 'latest');
}

/** `registry.example/team/shop:1.4` → `shop:1.4`. */
export const nameAndTag = (image: string): string => {
  const name = image
    .split('@')[0]!
    .replace(/^.*\//, '')
    .replace(/:[^:]*$/, '');
  return `${name}:${tagOf(image)}`;
};

export const capitalised = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

// Times that are settings: written as people do, stored in seconds.

const unitSeconds: Record<string, number> = { s: 1, sec: 1, m: 60, min: 60, h: 3600, d: 86_400 };

/** `5 min` → 300; `90` → 90; null: not a time. */
export function parseSeconds(text: string): number | null {
  const parts = [...text.trim().matchAll(/(\d+(?:\.\d+)?)\s*([a-z]*)\s*/gi)];
  if (parts.length === 0 || parts.map(([whole]) => whole).join('') !== text.trim()) return null;
  let sum = 0;
  for (const [, number, unit] of parts) {
    const size =
      unitSeconds[(unit || 's').toLowerCase().replace(/^(seconds?|minutes?|hours?|days?)$/, (word) => word[0]!)];
    if (size === undefined) return null;
    sum += Number(number) * size;
  }
  return Number.isInteger(sum) ? sum : null;
}

/** 90 → `1 min 30 s`; 300 → `5 min`. */
export function secondsText(seconds: number): string {
  if (seconds === 0) return '0 s';
  const parts: string[] = [];
  let rest = seconds;
  for (const [unit, size] of [
    ['d', 86_400],
    ['h', 3600],
    ['min', 60],
    ['s', 1],
  ] as const) {
    const n = Math.floor(rest / size);
    rest -= n * size;
    if (n > 0) parts.push(`${n} ${unit}`);
  }
  return parts.join(' ');
}

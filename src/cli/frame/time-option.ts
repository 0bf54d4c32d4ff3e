import { CliError, exit } from '../io.ts';

const unitMs: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `1h` is an hour ago; anything else is a time. `name`: of the option. */
export function readTime(text: string, name: string, nowMs: number): string {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const ms = unit === undefined ? Date.parse(text) : nowMs - Number(count) * unitMs[unit]!;
  if (!Number.isNaN(ms)) return new Date(ms).toISOString();
  throw new CliError(exit.usage, `--${name} must be a time, or how long ago: 30s, 15m, 1h, 2d.`);
}

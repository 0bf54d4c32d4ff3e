// A tenant does its worst, and another one must hardly notice: the 99th percentiles of what it does stay below five times what
// they are undisturbed, all of it succeeds, and the service neither grows by 100 MB nor stands still for long.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Attack, Outcome } from '../attack.ts';
import { type Target, tokenOf } from '../target.ts';
import { attackers } from './attackers.ts';
import { type Seen, watch, works } from './bystander.ts';

const entry = fileURLToPath(new URL('./attacker-process.ts', import.meta.url));
const megabyte = 1024 * 1024;
const maxFactor = 5;
const watchedMs = 12_000;

const mostGrowthMB = 100;
const longestStandstillMs = 250;

const undisturbed = new WeakMap<Target, Seen>();

async function undisturbedOf(target: Target): Promise<Seen> {
  const seen = undisturbed.get(target) ?? (await watch(target, watchedMs));
  undisturbed.set(target, seen);
  return seen;
}

export const worstTenantAttacks: Attack[] = Object.keys(attackers).map((name) => ({
  name: `a tenant at its worst: ${name}`,
  isMeasured: true,
  async run(target) {
    await target.settled();
    const before = await undisturbedOf(target);
    const { url, routerPort } = target;
    // Tokens of its own, with all of their rate: none is left of it afterwards.
    const newToken = () => tokenOf(url, target.attacker, { scopes: ['*'] });
    const tokens = await Promise.all(target.attacker.tokens.map(newToken));
    const attacker = { ...target.attacker, tokens };
    const worst = spawn(process.execPath, [entry, name], {
      env: { PATH: process.env.PATH, WORST: JSON.stringify({ url, routerPort, attacker, size: target.size }) },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const preparedAt = Date.now();
      await Promise.race([
        once(worst.stdout, 'data'),
        once(worst, 'exit').then(() => Promise.reject(new Error('the attacker ended before it began'))),
      ]);
      const during = await watch(target, watchedMs);
      // What this one leaves behind is not the next one's.
      undisturbed.set(target, { ...before, mostBytes: Math.max(before.mostBytes, during.mostBytes) });
      return judge({ target, before, during, preparedAt });
    } finally {
      worst.kill('SIGKILL');
    }
  },
}));

interface Measured {
  target: Target;
  before: Seen;
  during: Seen;
  /** From when on the attacker prepared its attack, which may disturb as well. */
  preparedAt: number;
}

function judge({ target, before, during, preparedAt }: Measured): Outcome {
  const broken = [...new Set(during.failures)];
  const table = [['', 'undisturbed', 'attacked', 'limit']];
  const compare = (what: string, unit: string, [usual, now, limit]: [number | null, number, number]) => {
    const cell = (value: number) => `${value.toFixed(0)} ${unit}`;
    table.push([what, usual === null ? '' : cell(usual), cell(now), cell(limit)]);
    if (now > limit) broken.push(`${what}: ${cell(now)}, ${cell(limit)} are allowed`);
  };
  for (const work of works) {
    const [usual, now] = [before, during].map((seen) => percentile(seen.tookMs.get(work.name) ?? [], 0.99)) as [
      number,
      number,
    ];
    const limit = maxFactor * Math.max(usual, work.leastMs);
    compare(`${work.name}, p99`, 'ms', [usual, now, limit]);
  }
  const megabytes = ({ mostBytes }: Seen) => mostBytes / megabyte;
  compare('memory', 'MB', [megabytes(before), megabytes(during), megabytes(before) + mostGrowthMB]);
  const longest = (sinceMs: number, beforeMs: number) =>
    target
      .standstills(sinceMs)
      .filter(({ at }) => at < beforeMs)
      .reduce((most, { ms }) => Math.max(most, ms), 0);
  const standstill = longest(preparedAt, Number.POSITIVE_INFINITY);
  compare('longest standstill of the loop', 'ms', [
    longest(before.sinceMs, preparedAt),
    standstill,
    longestStandstillMs,
  ]);
  const tried = [...during.tookMs.values()].reduce((sum, all) => sum + all.length, 0);
  return { tried, broken, table };
}

function percentile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

// A tenant does its worst, and another one must hardly notice: its 99th percentiles stay below five times what they are
// undisturbed, all its requests succeed, and the service does not grow by 100 MB.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import type { Attack, Outcome } from '../attack.ts';
import { type Target, tokenOf } from '../target.ts';
import { attackers } from './attackers.ts';

const entry = fileURLToPath(new URL('./attacker-process.ts', import.meta.url));
const megabyte = 1024 * 1024;
const maxGrowth = 100 * megabyte;
/** The short form has one service for all attacks, and may run beside anything. */
const shortMaxGrowth = 200 * megabyte;
const maxFactor = 5;
/** Below this, differences say something about the machine and nothing about the service. */
const leastMs = 10;
/** What the short form allows: it may run beside anything. */
const shortLimitMs = 10_000;

const undisturbed = new WeakMap<Target, Seen>();

async function undisturbedOf(target: Target, forMs: number): Promise<Seen> {
  const seen = undisturbed.get(target) ?? (await watch(target, forMs));
  undisturbed.set(target, seen);
  return seen;
}

export const worstTenantAttacks: Attack[] = Object.keys(attackers).map((name) => ({
  name: `a tenant at its worst: ${name}`,
  isMeasured: true,
  async run(target, short) {
    const forMs = short ? 1000 : 15_000;
    const before = await undisturbedOf(target, forMs);
    const { url, routerPort } = target;
    // Tokens of its own, with all of their rate: none is left of it afterwards.
    const newToken = () => tokenOf(url, target.attacker, { scopes: ['*'] });
    const tokens = await Promise.all(target.attacker.tokens.map(newToken));
    const attacker = { ...target.attacker, tokens };
    const worst = spawn(process.execPath, [entry, name], {
      env: { PATH: process.env.PATH, WORST: JSON.stringify({ url, routerPort, attacker }) },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      await once(worst.stdout, 'data');
      const during = await watch(target, forMs);
      // What this one leaves behind is not the next one's.
      undisturbed.set(target, { ...before, mostBytes: Math.max(before.mostBytes, during.mostBytes) });
      return judge(before, during, short);
    } finally {
      worst.kill('SIGKILL');
    }
  },
}));

function judge(before: Seen, during: Seen, short: boolean): Outcome {
  const broken = [...during.failures];
  const notes: string[] = [];
  for (const [what, pick] of [
    ['API', (seen: Seen) => seen.apiMs],
    ['router', (seen: Seen) => seen.routerMs],
  ] as const) {
    const usual = percentile(pick(before), 0.99);
    const now = percentile(pick(during), 0.99);
    notes.push(`${what} p99 ${usual.toFixed(0)} → ${now.toFixed(0)} ms`);
    const limit = short ? shortLimitMs : maxFactor * Math.max(usual, leastMs);
    if (now > limit) broken.push(`${what}: p99 ${now.toFixed(0)} ms, undisturbed ${usual.toFixed(0)} ms`);
  }
  const growth = during.mostBytes - before.mostBytes;
  notes.push(`${growth < 0 ? '' : '+'}${Math.round(growth / megabyte)} MB`);
  if (growth > (short ? shortMaxGrowth : maxGrowth))
    broken.push(`the service grew by ${Math.round(growth / megabyte)} MB`);
  return { tried: during.apiMs.length + during.routerMs.length, broken, note: notes.join(', ') };
}

const localAddress = '127.0.0.3';
const pauseMs = 25;

interface Seen {
  apiMs: number[];
  routerMs: number[];
  failures: string[];
  /** The most memory that the service had meanwhile. */
  mostBytes: number;
}

/** How long the requests of the other tenant take, to the API and to what it has deployed. */
async function watch(target: Target, forMs: number): Promise<Seen> {
  const seen: Seen = { apiMs: [], routerMs: [], failures: [], mostBytes: 0 };
  const agent = new Agent({ keepAlive: true });
  const { url, routerPort, bystander } = target;
  const until = performance.now() + forMs;
  const ask = async (into: number[], what: string, at: () => { url: string; headers: Record<string, string> }) => {
    while (performance.now() < until) {
      const startedAt = performance.now();
      const asked = at();
      const status = await get(asked.url, asked.headers, agent).catch((error: Error) => error.message);
      into.push(performance.now() - startedAt);
      if (status !== 200) seen.failures.push(`${what}: ${status}`);
      seen.mostBytes = Math.max(seen.mostBytes, target.residentBytes());
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  };
  let sent = 0;
  const api = () => {
    const token = bystander.tokens[sent++ % bystander.tokens.length]!;
    return { url: `${url}/v1/projects`, headers: { authorization: `Bearer ${token}` } };
  };
  const visit = () => ({ url: `http://127.0.0.1:${routerPort}/`, headers: { host: bystander.host } });
  await Promise.all([ask(seen.apiMs, 'API', api), ask(seen.routerMs, 'router', visit)]);
  agent.destroy();
  return seen;
}

function get(url: string, headers: Record<string, string>, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers, agent, localAddress, timeout: 30_000 }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode!));
    });
    sent.on('timeout', () => sent.destroy(new Error('no answer in 30 s')));
    sent.on('error', reject).end();
  });
}

function percentile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

// The other tenant: how long its requests take, to the API and to what it has deployed.
import { Agent, request } from 'node:http';
import type { Target } from '../target.ts';

const localAddress = '127.0.0.3';
const pauseMs = 25;

export interface Seen {
  apiMs: number[];
  routerMs: number[];
  failures: string[];
  /** The most memory that the service had meanwhile. */
  mostBytes: number;
}

export async function watch(target: Target, forMs: number): Promise<Seen> {
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

export function percentile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

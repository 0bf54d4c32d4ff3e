// How a host name becomes addresses: /etc/hosts, then DNS, with the search list of /etc/resolv.conf. The system's own
// getaddrinfo() would hold one of the few threads that the process shares with its files for as long as DNS is silent;
// this waits on a socket, ends at its deadline, and asks once for all who wait for the same name. Answers are kept for a
// moment, and so is that there was none.
import { Resolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { LruCache } from './bounded-cache.ts';

export interface ResolvedAddress {
  address: string;
  family: number;
}

export type Lookup = (hostname: string) => Promise<ResolvedAddress[]>;

interface LookupOptions {
  /** Those of the system, unless given. */
  servers?: string[];
  hostsFile?: string;
  resolvFile?: string;
  timeoutMs?: number;
  nowMs?: () => number;
}

const keptForMs = 5000;
const silenceKeptForMs = 30_000;
const maxKept = 10_000;

type Answer = { addresses: ResolvedAddress[] } | { error: Error };
interface Kept {
  answer: Answer;
  untilMs: number;
}

export function createLookup(options: LookupOptions = {}): Lookup {
  const nowMs = options.nowMs ?? (() => performance.now());
  const kept = new LruCache<Kept>(maxKept);
  const asking = new Map<string, Promise<Answer>>();

  const ask = async (name: string): Promise<Answer> => {
    const answer = await resolveName(name, options).then(
      (addresses) => ({ addresses }),
      (error: Error) => ({ error }),
    );
    const forMs = 'error' in answer && isSilence(answer.error) ? silenceKeptForMs : keptForMs;
    kept.set(name, { answer, untilMs: nowMs() + forMs });
    asking.delete(name);
    return answer;
  };

  return async (hostname) => {
    const name = hostname.toLowerCase();
    const known = kept.get(name);
    const isFresh = known !== undefined && nowMs() < known.untilMs;
    let pending = asking.get(name);
    if (!isFresh && !pending) {
      pending = ask(name);
      asking.set(name, pending);
    }
    const answer = isFresh ? known.answer : await pending!;
    if ('error' in answer) throw answer.error;
    return answer.addresses;
  };
}

const isSilence = (error: Error & { code?: string }): boolean =>
  error.code === 'ETIMEOUT' || error.code === 'ECANCELLED' || error.code === 'ESERVFAIL';

const loopback: ResolvedAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

async function resolveName(name: string, options: LookupOptions): Promise<ResolvedAddress[]> {
  const { hostsFile = '/etc/hosts', resolvFile = '/etc/resolv.conf', timeoutMs = 5000, servers } = options;
  const bare = name.replace(/\.$/, '');
  const listed = inHosts(await textOf(hostsFile), bare);
  if (listed.length > 0) return listed;
  if (bare === 'localhost' || bare.endsWith('.localhost')) return loopback;
  const resolver = new Resolver({ timeout: Math.ceil(timeoutMs / 2), tries: 2 });
  if (servers) resolver.setServers(servers);
  const limit = setTimeout(() => resolver.cancel(), timeoutMs);
  try {
    let missing: Error | null = null;
    for (const candidate of candidatesFor(name, searchList(await textOf(resolvFile)))) {
      const found = await Promise.allSettled([resolver.resolve4(candidate), resolver.resolve6(candidate)]);
      const addresses = found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
      if (addresses.length > 0) return addresses.map((address) => ({ address, family: isIP(address) }));
      const reasons = found.flatMap((one) => (one.status === 'rejected' ? [one.reason as Error] : []));
      const silent = reasons.find(isSilence);
      if (silent) throw silent;
      missing = reasons[0] ?? null;
    }
    throw missing ?? new Error(`${bare} has no address`);
  } finally {
    clearTimeout(limit);
  }
}

const textOf = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');

function inHosts(text: string, name: string): ResolvedAddress[] {
  const found: ResolvedAddress[] = [];
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    if (isIP(address) !== 0 && names.some((one) => one.toLowerCase() === name))
      found.push({ address, family: isIP(address) });
  }
  return found;
}

interface SearchList {
  domains: string[];
  /** A name with so many dots is tried as it is first. */
  dots: number;
}

function searchList(text: string): SearchList {
  const lines = text.split('\n').map((line) => line.trim().split(/\s+/));
  const domains = lines.findLast(([key]) => key === 'search' || key === 'domain')?.slice(1) ?? [];
  const options = lines.filter(([key]) => key === 'options').flat();
  const dots = options.map((option) => /^ndots:(\d+)$/.exec(option)?.[1]).findLast((value) => value !== undefined);
  return { domains: domains.filter((domain) => domain !== '.'), dots: dots === undefined ? 1 : Number(dots) };
}

function candidatesFor(name: string, { domains, dots }: SearchList): string[] {
  if (name.endsWith('.')) return [name.slice(0, -1)];
  const searched = domains.map((domain) => `${name}.${domain.replace(/\.$/, '')}`);
  return name.split('.').length - 1 >= dots ? [name, ...searched] : [...searched, name];
}

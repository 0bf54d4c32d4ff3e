// The backends of HAProxy, each of which stands for one revision, and their servers as text. HAProxy 2.6 cannot add
// backends at run time, so it starts with spare ones, and a reload that adds more is rare. No I/O.
import type { Share, Target } from '../data-plane.ts';

/** `<project>/<environment>/<revision>`. */
type BackendUse = string;

export class Backends {
  readonly #uses = new Map<BackendUse, string>();
  #free: string[] = [];
  #size = 0;

  constructor(size: number, uses: Iterable<[BackendUse, string]> = []) {
    for (const [use, name] of uses) this.#uses.set(use, name);
    const taken = new Set(this.#uses.values());
    this.grow(Math.max(size, ...[...taken].map((name) => Number(name.slice(1)))));
    this.#free = this.#free.filter((name) => !taken.has(name));
  }

  get size(): number {
    return this.#size;
  }

  get free(): number {
    return this.#free.length;
  }

  uses(): BackendUse[] {
    return [...this.#uses.keys()];
  }

  nameOf(use: BackendUse): string | undefined {
    return this.#uses.get(use);
  }

  /** Null: none is left, and the pool has to grow. */
  assign(use: BackendUse): string | null {
    const name = this.#uses.get(use) ?? this.#free.shift() ?? null;
    if (name !== null) this.#uses.set(use, name);
    return name;
  }

  release(use: BackendUse): void {
    const name = this.#uses.get(use);
    if (name === undefined) return;
    this.#uses.delete(use);
    this.#free.push(name);
  }

  /** Gives the names that are new. */
  grow(size: number): string[] {
    const names = Array.from({ length: Math.max(0, size - this.#size) }, (_, i) => `b${this.#size + i + 1}`);
    this.#size += names.length;
    this.#free.push(...names);
    return names;
  }
}

/** By server name: its address. The name is the id of the instance, with a prefix while a canary runs. */
export type Servers = ReadonlyMap<string, string>;

export const noServers: Servers = new Map();

const addressOf = (host: string, port: number | string): string => `${host.includes(':') ? `[${host}]` : host}:${port}`;

/**
 * While a canary runs, a visitor whose side takes no connection is answered by the other side: its instances are the backups of
 * each backend. HAProxy uses these once all others are down, so it has to notice that: a server goes down with
 * the first connection that it does not accept, and a check a second later brings it back.
 */
const watched = 'w.';
const standIn = (revision: number): string => `r${revision}.`;

/** The servers of a share's backend; `other`: the other share of the environment. */
export function serversOf({ targets }: Share, other: Share | undefined): Servers {
  const named = (prefix: string, list: readonly Target[]) =>
    list.map(({ instance, host, port }): [string, string] => [`${prefix}${instance}`, addressOf(host, port)]);
  if (other === undefined || targets.length === 0 || other.targets.length === 0) return new Map(named('', targets));
  return new Map([...named(watched, targets), ...named(standIn(other.revision), other.targets)]);
}

/** Which instance a server is, and of which revision if it stands in for the backend's own; null: it is one of these. */
export function readServerName(name: string): { instance: string; revision: number | null } {
  const [, revision, instance = name] = /^(?:w|r(\d+))\.(.*)$/.exec(name) ?? [];
  return { instance, revision: revision === undefined ? null : Number(revision) };
}

/** Without these, a server that is added at run time keeps no idle connection. */
const keptConnections = 'pool-max-conn 256 pool-purge-delay 2s';
/** Nothing is checked while connections succeed: an hour is as good as never. */
const connectionsObserved =
  'check inter 1h fastinter 1s downinter 1s fall 1 rise 1 observe layer4 error-limit 1 on-error mark-down';

const isWatched = (server: string): boolean => server.startsWith(watched);

function optionsOf(server: string): string {
  if (isWatched(server)) return `${keptConnections} ${connectionsObserved}`;
  return readServerName(server).revision === null ? keptConnections : `${keptConnections} backup`;
}

/** `use`: the revision that the backend stands for; null: a spare one. */
export function backendText(name: string, use: string | null, servers: Servers): string {
  const lines = [...servers].map(([server, address]) => `    server ${server} ${address} ${optionsOf(server)}\n`);
  return `# ${use ?? 'spare'}\nbackend ${name}\n${lines.join('')}`;
}

export const addServer = (backend: string, server: string, address: string): string[] => [
  `add server ${backend}/${server} ${address} ${optionsOf(server)}`,
  setState(backend, server, 'ready'),
  ...(isWatched(server) ? [`enable health ${backend}/${server}`] : []),
];

export function moveServer(backend: string, server: string, address: string): string {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '');
  return `set server ${backend}/${server} addr ${host} port ${address.slice(colon + 1)}`;
}

/** In `maint` a server gets no new requests; those under way go on. */
export const setState = (backend: string, server: string, state: 'ready' | 'maint'): string =>
  `set server ${backend}/${server} state ${state}`;

interface ListedServer {
  backend: string;
  server: string;
  address: string;
  inMaintenance: boolean;
}

/** What `show servers state` says. */
export function readServersState(text: string): ListedServer[] {
  const rows = text.split('\n').filter((line) => !line.startsWith('#'));
  return rows
    .map((line) => line.split(' '))
    .filter((fields) => fields.length >= 20)
    .map((fields) => ({
      backend: fields[1]!,
      server: fields[3]!,
      address: addressOf(fields[4]!, fields[18]!),
      inMaintenance: fields[6] !== '0',
    }));
}

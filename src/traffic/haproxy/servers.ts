// The servers of a backend as text: in its file, in commands, and as HAProxy lists them.
import type { Target } from '../table.ts';

/** By server name, which is the id of the instance: its address. */
export type Servers = ReadonlyMap<string, string>;

export const noServers: Servers = new Map();

const addressOf = (host: string, port: number | string): string => `${host.includes(':') ? `[${host}]` : host}:${port}`;

export const serversOf = (targets: readonly Target[]): Servers =>
  new Map(targets.map(({ instance, host, port }) => [instance, addressOf(host, port)]));

/** Without these, a server that is added at run time keeps no idle connection. */
const options = 'pool-max-conn 256 pool-purge-delay 2s';

/** `use`: the revision that the backend stands for; null: a spare one. */
export function backendText(name: string, use: string | null, servers: Servers): string {
  const lines = [...servers].map(([server, address]) => `    server ${server} ${address} ${options}\n`);
  return `# ${use ?? 'spare'}\nbackend ${name}\n${lines.join('')}`;
}

export const addServer = (backend: string, server: string, address: string): string[] => [
  `add server ${backend}/${server} ${address} ${options}`,
  setState(backend, server, 'ready'),
];

export function moveServer(backend: string, server: string, address: string): string {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '');
  return `set server ${backend}/${server} addr ${host} port ${address.slice(colon + 1)}`;
}

/** In `maint` a server gets no new requests; those under way go on. */
export const setState = (backend: string, server: string, state: 'ready' | 'maint'): string =>
  `set server ${backend}/${server} state ${state}`;

export interface ListedServer {
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

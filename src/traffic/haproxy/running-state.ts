// What the running HAProxy has in memory, and the commands that change it: the map of hosts and the servers of backends.
// What it starts with is in its files.
import { addServer, moveServer, noServers, readServersState, type Servers, setState } from './backends.ts';
import { readMap } from './haproxy-files.ts';
import { ask, runCommands } from './haproxy-socket.ts';

/** The map of hosts. */
export class RunningHosts {
  readonly #adminSocket: string;
  readonly #map: string;
  #values = new Map<string, string>();

  constructor(adminSocket: string, map: string) {
    this.#adminSocket = adminSocket;
    this.#map = map;
  }

  /** Learns what HAProxy has, after it was started, reloaded or found again. */
  async read(): Promise<void> {
    const entries = await ask(this.#adminSocket, `show map ${this.#map}`);
    this.#values = readMap(entries.replace(/^0x\S+ /gm, ''));
  }

  names(): string[] {
    return [...this.#values.keys()];
  }

  /** By host; null: it goes. */
  async change(wanted: ReadonlyMap<string, string | null>): Promise<void> {
    const changes = [...wanted].filter(([host, value]) => (this.#values.get(host) ?? null) !== value);
    await runCommands(
      this.#adminSocket,
      changes.map(([host, value]) => {
        if (value === null) return `del map ${this.#map} ${host}`;
        return `${this.#values.has(host) ? 'set' : 'add'} map ${this.#map} ${host} ${value}`;
      }),
    );
    for (const [host, value] of changes) {
      if (value === null) this.#values.delete(host);
      else this.#values.set(host, value);
    }
  }
}

interface Leaving {
  backend: string;
  server: string;
  address: string;
  /** When it stops getting new requests. */
  retireAt: number;
  retired: boolean;
}

const nameOf = ({ backend, server }: { backend: string; server: string }): string => `${backend}/${server}`;

/**
 * The servers. One that is no longer wanted gets no new requests, and is deleted once its last connection is closed.
 */
export class RunningServers {
  readonly #adminSocket: string;
  readonly #serving = new Map<string, Map<string, string>>();
  readonly #leaving = new Map<string, Leaving>();

  constructor(adminSocket: string) {
    this.#adminSocket = adminSocket;
  }

  /** Learns what HAProxy has, after it was started or reloaded. */
  async read(): Promise<void> {
    this.#serving.clear();
    this.#leaving.clear();
    for (const one of readServersState(await ask(this.#adminSocket, 'show servers state'))) {
      const { backend, server, address, inMaintenance } = one;
      if (inMaintenance) this.#leaving.set(nameOf(one), { backend, server, address, retireAt: 0, retired: true });
      else this.#servingOf(backend).set(server, address);
    }
  }

  #servingOf(backend: string): Map<string, string> {
    let servers = this.#serving.get(backend);
    if (!servers) {
      servers = new Map();
      this.#serving.set(backend, servers);
    }
    return servers;
  }

  /** Adds what is missing; what is there already goes on as it is. */
  async add(backend: string, wanted: Servers): Promise<void> {
    const serving = this.#servingOf(backend);
    const commands: string[] = [];
    for (const [server, address] of wanted) {
      if (serving.get(server) === address) continue;
      const before = this.#leaving.get(nameOf({ backend, server }))?.address ?? serving.get(server);
      if (before === undefined) commands.push(...addServer(backend, server, address));
      else {
        if (before !== address) commands.push(moveServer(backend, server, address));
        commands.push(setState(backend, server, 'ready'));
      }
      this.#leaving.delete(nameOf({ backend, server }));
      serving.set(server, address);
    }
    await runCommands(this.#adminSocket, commands);
  }

  /** Retires what is not wanted, now or at a later time. */
  async keepOnly(backend: string, wanted: Servers, retireAt: number): Promise<void> {
    const serving = this.#servingOf(backend);
    for (const [server, address] of [...serving]) {
      if (wanted.has(server)) continue;
      serving.delete(server);
      this.#leaving.set(nameOf({ backend, server }), { backend, server, address, retireAt, retired: false });
    }
    if (serving.size === 0) this.#serving.delete(backend);
    await this.#retireDue(retireAt);
  }

  async #retireDue(nowMs: number): Promise<void> {
    const due = [...this.#leaving.values()].filter(({ retireAt, retired }) => !retired && retireAt <= nowMs);
    await runCommands(
      this.#adminSocket,
      due.map(({ backend, server }) => setState(backend, server, 'maint')),
    );
    for (const one of due) one.retired = true;
  }

  /** To be called from time to time. */
  async deleteRetired(nowMs: number): Promise<void> {
    await this.#retireDue(nowMs);
    for (const [name, { retired }] of this.#leaving) {
      if (!retired) continue;
      const answer = await ask(this.#adminSocket, `del server ${name}`);
      if (/deleted|no such server/i.test(answer)) this.#leaving.delete(name);
    }
  }

  isEmpty(backend: string): boolean {
    if ((this.#serving.get(backend) ?? noServers).size > 0) return false;
    return ![...this.#leaving.values()].some((one) => one.backend === backend);
  }
}

// The routing table as HAProxy has it: a map of hosts, and a backend per revision. A change is written to disk first and
// then made in the running process; a reload is needed only where the spare backends run out.
import { type EnvironmentRoutes, routesKey } from '../table.ts';
import { Backends } from './backends.ts';
import { runCommands } from './control.ts';
import type { HaproxyFiles } from './files.ts';
import { backendFile, mapText, readBackends, readMap, readOrEmpty, replaceFile } from './folder.ts';
import { routeValue } from './route-line.ts';
import { RunningServers } from './running-servers.ts';
import { backendText, noServers, type Servers, serversOf } from './servers.ts';

const spareBackends = 128;
/** A request that has just looked up its host is on its way to the backend it found. */
const settleMs = 1000;
/** Longer than a request may try to connect, again and again, within the backend it has. */
const restMs = 20_000;

interface Wanted {
  use: string;
  servers: Servers;
}

const usesOf = ({ project, environment, hosts, shares }: EnvironmentRoutes): Map<number, string> =>
  new Map(hosts.length === 0 ? [] : shares.map(({ revision }) => [revision, `${project}/${environment}/${revision}`]));

export class HaproxyRoutes {
  readonly #files: HaproxyFiles;
  readonly #now: () => number;
  readonly #servers: RunningServers;
  #backends = new Backends(0);
  readonly #environments = new Map<string, EnvironmentRoutes>();
  /** The map of hosts as it is on disk. */
  #hosts = new Map<string, string>();
  /** Uses that are over, and since when their backends have no server; null: they still have one. */
  readonly #emptied = new Map<string, number | null>();

  constructor(files: HaproxyFiles, now: () => number) {
    this.#files = files;
    this.#now = now;
    this.#servers = new RunningServers(files.adminSocket);
  }

  /** Goes on with what an earlier process left on disk. */
  async open(): Promise<void> {
    const onDisk = await readBackends(this.#files);
    const used = [...onDisk].flatMap(([name, use]): [string, string][] => (use === null ? [] : [[use, name]]));
    this.#backends = new Backends(onDisk.size, used);
    this.#hosts = readMap(await readOrEmpty(this.#files.routes));
    if (this.#backends.free < spareBackends / 2) await this.#grow(spareBackends);
  }

  /** HAProxy has just been started, reloaded or found again. */
  attach(): Promise<void> {
    return this.#servers.read();
  }

  get environments(): ReadonlyMap<string, EnvironmentRoutes> {
    return this.#environments;
  }

  /** Writes the environments to disk. True: HAProxy has to load its files, because it has too few backends. */
  async write(changed: readonly EnvironmentRoutes[]): Promise<boolean> {
    const needed = changed
      .flatMap((routes) => [...usesOf(routes).values()])
      .filter((use) => !this.#backends.nameOf(use));
    const grown = needed.length > this.#backends.free;
    if (grown) await this.#grow(Math.max(needed.length, this.#backends.size));
    for (const routes of changed) {
      for (const [name, { use, servers }] of this.#wantedBackends(routes)) {
        await replaceFile(backendFile(this.#files, name), backendText(name, use, servers));
      }
    }
    return grown;
  }

  async #grow(by: number): Promise<void> {
    for (const name of this.#backends.grow(this.#backends.size + by)) {
      await replaceFile(backendFile(this.#files, name), backendText(name, null, noServers));
    }
  }

  #wantedBackends(routes: EnvironmentRoutes): Map<string, Wanted> {
    const wanted = new Map<string, Wanted>();
    for (const [revision, use] of usesOf(routes)) {
      const { targets } = routes.shares.find((share) => share.revision === revision)!;
      this.#emptied.delete(use);
      wanted.set(this.#backends.assign(use)!, { use, servers: serversOf(targets) });
    }
    return wanted;
  }

  /** For a HAProxy that does not run yet, or is about to load its files again. */
  async writeHosts(changed: readonly EnvironmentRoutes[]): Promise<void> {
    await this.#changeHosts(changed, false);
  }

  /** Remembers what the environments have from now on. */
  settle(changed: readonly EnvironmentRoutes[]): void {
    for (const routes of changed) {
      if (routes.hosts.length === 0) this.#environments.delete(routesKey(routes));
      else this.#environments.set(routesKey(routes), routes);
    }
  }

  /** Replaces environments in the running HAProxy: new servers, then the hosts, then what is gone. */
  async change(changed: readonly EnvironmentRoutes[]): Promise<void> {
    const wanted = changed.map((routes) => this.#wantedBackends(routes));
    for (const backends of wanted) for (const [name, { servers }] of backends) await this.#servers.add(name, servers);
    await this.#changeHosts(changed, true);
    const nowMs = this.#now();
    for (const backends of wanted) {
      for (const [name, { servers }] of backends) await this.#servers.keepOnly(name, servers, nowMs);
    }
    await this.#leave(changed, nowMs + settleMs);
  }

  /** Backends that the environments had and have no more. */
  async #leave(changed: readonly EnvironmentRoutes[], retireAt: number): Promise<void> {
    for (const routes of changed) {
      const uses = new Set(usesOf(routes).values());
      const before = this.#environments.get(routesKey(routes));
      for (const use of before ? usesOf(before).values() : []) {
        if (uses.has(use)) continue;
        await this.#empty(use, retireAt);
      }
    }
  }

  /** The file keeps saying whose it was: a process that follows may not give it to others at once, either. */
  async #empty(use: string, retireAt: number): Promise<void> {
    const name = this.#backends.nameOf(use)!;
    await replaceFile(backendFile(this.#files, name), backendText(name, use, noServers));
    await this.#servers.keepOnly(name, noServers, retireAt);
    this.#emptied.set(use, null);
  }

  /** The map of hosts, on disk and, where HAProxy runs, in its memory. */
  async #changeHosts(changed: readonly EnvironmentRoutes[], isRunning: boolean): Promise<void> {
    await this.#applyHosts(this.#hostChanges(changed), isRunning);
  }

  async #applyHosts(changes: ReadonlyMap<string, string | null>, isRunning: boolean): Promise<void> {
    if (changes.size === 0) return;
    const { adminSocket, routes } = this.#files;
    const commands = [...changes].map(([host, value]) => {
      if (value === null) return `del map ${routes} ${host}`;
      return `${this.#hosts.has(host) ? 'set' : 'add'} map ${routes} ${host} ${value}`;
    });
    for (const [host, value] of changes) {
      if (value === null) this.#hosts.delete(host);
      else this.#hosts.set(host, value);
    }
    await replaceFile(routes, mapText(this.#hosts));
    if (isRunning) await runCommands(adminSocket, commands);
  }

  /** By host; null: it goes. */
  #hostChanges(changed: readonly EnvironmentRoutes[]): Map<string, string | null> {
    const changes = new Map<string, string | null>();
    for (const routes of changed) {
      for (const { name } of this.#environments.get(routesKey(routes))?.hosts ?? []) changes.set(name, null);
    }
    for (const routes of changed) {
      const uses = usesOf(routes);
      const backendOf = (revision: number) => this.#backends.assign(uses.get(revision)!)!;
      for (const { name, secure } of routes.hosts) changes.set(name, routeValue(routes, secure, backendOf));
    }
    for (const [host, value] of changes) if ((this.#hosts.get(host) ?? null) === value) changes.delete(host);
    return changes;
  }

  /** Drops what the files of an earlier process have and no environment has any more. */
  async dropUnknown(isRunning: boolean): Promise<void> {
    const environments = [...this.#environments.values()];
    const hosts = new Set(environments.flatMap((routes) => routes.hosts.map(({ name }) => name)));
    const gone = [...this.#hosts.keys()].filter((host) => !hosts.has(host));
    await this.#applyHosts(new Map(gone.map((host) => [host, null])), isRunning);
    const uses = new Set(environments.flatMap((routes) => [...usesOf(routes).values()]));
    for (const use of this.#backends.uses()) {
      if (!uses.has(use) && !this.#emptied.has(use)) await this.#empty(use, this.#now() + settleMs);
    }
  }

  /** To be called from time to time. */
  async tidy(): Promise<void> {
    const nowMs = this.#now();
    await this.#servers.deleteRetired(nowMs);
    for (const [use, emptySince] of this.#emptied) {
      const name = this.#backends.nameOf(use)!;
      if (emptySince === null) {
        if (this.#servers.isEmpty(name)) this.#emptied.set(use, nowMs);
      } else if (nowMs - emptySince >= restMs) {
        await replaceFile(backendFile(this.#files, name), backendText(name, null, noServers));
        this.#emptied.delete(use);
        this.#backends.release(use);
      }
    }
  }
}

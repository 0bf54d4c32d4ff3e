// The routing table as HAProxy has it: a map of hosts, and a backend per revision. A change is written to disk first and
// then made in the running process; a reload is needed only where the spare backends run out.
import { type EnvironmentRoutes, routesKey } from '../data-plane.ts';
import { Backends, backendText, noServers, type Servers, serversOf } from './backends.ts';
import { routeValue } from './haproxy-config.ts';
import {
  backendFile,
  type HaproxyFiles,
  mapText,
  readBackends,
  readMap,
  readOrEmpty,
  replaceFile,
} from './haproxy-files.ts';
import { ask } from './haproxy-socket.ts';
import { RunningHosts, RunningServers } from './running-state.ts';

const spareBackends = 128;
/**
 * A request that has just looked up its host is on its way to the backend it found. Where the only instance there takes no
 * connection, HAProxy waits for a second before it asks another, up to three times.
 */
const settleMs = 4000;
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
  readonly #runningHosts: RunningHosts;
  #backends = new Backends(0);
  /** How many of them the running HAProxy has. */
  #runningBackends = 0;
  readonly #environments = new Map<string, EnvironmentRoutes>();
  /** The map of hosts as it is on disk. */
  #hosts = new Map<string, string>();
  /** Uses that are over, and since when their backends have no server; null: they still have one. */
  readonly #emptied = new Map<string, number | null>();

  constructor(files: HaproxyFiles, now: () => number) {
    this.#files = files;
    this.#now = now;
    this.#servers = new RunningServers(files.adminSocket);
    this.#runningHosts = new RunningHosts(files.adminSocket, files.routes);
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
  async attach(): Promise<void> {
    await this.#servers.read();
    await this.#runningHosts.read();
    this.#runningBackends = (await ask(this.#files.adminSocket, 'show backend')).match(/^b\d+$/gm)?.length ?? 0;
  }

  get environments(): ReadonlyMap<string, EnvironmentRoutes> {
    return this.#environments;
  }

  /** Whether HAProxy has to load its files, because these have more backends than it has. */
  get lackBackends(): boolean {
    return this.#backends.size > this.#runningBackends;
  }

  /** The backends of environments with a canary: which revision each stands for. */
  canaryBackends(): Map<string, { project: string; environment: string; revision: number }> {
    const found = new Map<string, { project: string; environment: string; revision: number }>();
    for (const routes of this.#environments.values()) {
      if (routes.shares.length < 2) continue;
      const { project, environment } = routes;
      for (const [revision, use] of usesOf(routes)) {
        const backend = this.#backends.nameOf(use);
        if (backend !== undefined) found.set(backend, { project, environment, revision });
      }
    }
    return found;
  }

  /** Writes the environments to disk. */
  async write(changed: readonly EnvironmentRoutes[]): Promise<void> {
    const needed = changed
      .flatMap((routes) => [...usesOf(routes).values()])
      .filter((use) => !this.#backends.nameOf(use));
    if (needed.length > this.#backends.free) await this.#grow(Math.max(needed.length, this.#backends.size));
    for (const routes of changed) {
      for (const [name, { use, servers }] of this.#wantedBackends(routes)) {
        await replaceFile(backendFile(this.#files, name), backendText(name, use, servers));
      }
    }
    await this.#writeHosts(this.#hostChanges(changed));
  }

  async #grow(by: number): Promise<void> {
    for (const name of this.#backends.grow(this.#backends.size + by)) {
      await replaceFile(backendFile(this.#files, name), backendText(name, null, noServers));
    }
  }

  #wantedBackends(routes: EnvironmentRoutes): Map<string, Wanted> {
    const wanted = new Map<string, Wanted>();
    for (const [revision, use] of usesOf(routes)) {
      const own = routes.shares.find((share) => share.revision === revision)!;
      const other = routes.shares.find((share) => share.revision !== revision);
      this.#emptied.delete(use);
      wanted.set(this.#backends.assign(use)!, { use, servers: serversOf(own, other) });
    }
    return wanted;
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
    await this.#runningHosts.change(this.#hostChanges(changed));
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

  async #empty(use: string, retireAt: number): Promise<void> {
    await this.#writeEmpty(use);
    await this.#servers.keepOnly(this.#backends.nameOf(use)!, noServers, retireAt);
    this.#emptied.set(use, null);
  }

  /** The file keeps saying whose it was: a process that follows may not give it to others at once, either. */
  async #writeEmpty(use: string): Promise<void> {
    const name = this.#backends.nameOf(use)!;
    await replaceFile(backendFile(this.#files, name), backendText(name, use, noServers));
  }

  async #writeHosts(changes: ReadonlyMap<string, string | null>): Promise<void> {
    const isOnDisk = [...changes].every(([host, value]) => (this.#hosts.get(host) ?? null) === value);
    if (isOnDisk) return;
    const hosts = new Map(this.#hosts);
    for (const [host, value] of changes) {
      if (value === null) hosts.delete(host);
      else hosts.set(host, value);
    }
    await replaceFile(this.#files.routes, mapText(hosts));
    this.#hosts = hosts;
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
    return changes;
  }

  /** Makes a HAProxy that was started or found again have what it should, whatever it has. */
  async compare(): Promise<void> {
    await this.change([...this.#environments.values()]);
    await this.dropUnknown();
  }

  /** Takes out of the files what an earlier process wrote and no environment has any more. */
  async writeUnknown(): Promise<void> {
    await this.#writeHosts(this.#unknownOf(this.#hosts.keys()));
    for (const use of this.#unknownUses()) await this.#writeEmpty(use);
  }

  /** Takes it out of the running HAProxy. */
  async dropUnknown(): Promise<void> {
    await this.#runningHosts.change(this.#unknownOf(this.#runningHosts.names()));
    for (const use of this.#unknownUses()) await this.#empty(use, this.#now() + settleMs);
  }

  #unknownOf(hosts: Iterable<string>): Map<string, null> {
    const known = new Set([...this.#environments.values()].flatMap((routes) => routes.hosts.map(({ name }) => name)));
    return new Map([...hosts].filter((host) => !known.has(host)).map((host) => [host, null]));
  }

  /** Those that no environment has, and whose backends may still have servers. */
  #unknownUses(): string[] {
    const known = new Set([...this.#environments.values()].flatMap((routes) => [...usesOf(routes).values()]));
    return [...this.#backends.uses()].filter((use) => !known.has(use) && (this.#emptied.get(use) ?? null) === null);
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

// A network for each project: instances reach the others of their project and the outside, not those of other projects.
// Routers reach them by the ports they publish. A network whose project has no container any more is removed.
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseRange, type Range, rangeText } from '../../lib/address.ts';
import { EngineError } from '../engine.ts';
import { label, labelFilter } from './container.ts';
import type { NetworkInfo } from './docker-api.ts';
import { type DockerClient, isErrorResponse, nullOnStatus } from './docker-client.ts';
import { freeSubnets, isShared, parseRoutes, type Route, type SubnetPool } from './subnets.ts';

const mostTries = 10;
const mostTurns = 65_536;

interface NetworkParts {
  client: DockerClient;
  installation: string;
  pool: SubnetPool;
  turn?: number;
  sweepEveryMs: number;
}

export class ProjectNetworks {
  readonly #parts: NetworkParts;
  readonly #making = new Map<string, Promise<void>>();
  /** Networks that had no container when they were looked at last. */
  #idle = new Set<string>();
  #sweepAt = 0;

  constructor(parts: NetworkParts) {
    this.#parts = parts;
  }

  nameFor(project: string): string {
    return `sluice-${this.#parts.installation}-${project}`;
  }

  /** Returns its name. Concurrent calls for one project make one network. */
  async ensure(project: string): Promise<string> {
    const name = this.nameFor(project);
    const making = this.#making.get(name) ?? this.#make(name, project).finally(() => this.#making.delete(name));
    this.#making.set(name, making);
    await making;
    this.#idle.delete(name);
    return name;
  }

  async #make(name: string, project: string): Promise<void> {
    if (await this.#find(name)) return;
    let { turn } = this.#parts;
    for (let tries = 1; tries <= mostTries; tries++) {
      const made = await this.#create(name, project, turn);
      // Another engine on this machine may have taken the same at once. At least one of the two sees it, and gives way.
      if (!made || !isShared(made.subnet, ownRoutes())) return;
      await this.#remove(made.id);
      turn = randomInt(mostTurns);
    }
    throw new EngineError('start_failed', `other engines took each of ${mostTries} subnets at the same time`);
  }

  /** Null where there is one by now. */
  async #create(name: string, project: string, turn?: number): Promise<{ id: string; subnet: Range } | null> {
    const { client, installation, pool } = this.#parts;
    const taken = [...(await this.#subnets()), ...ownRoutes().map(({ network }) => network)];
    for (const subnet of freeSubnets(pool, project, taken, turn)) {
      try {
        const body = {
          Name: name,
          CheckDuplicate: true,
          Driver: 'bridge',
          IPAM: { Driver: 'default', Config: [{ Subnet: rangeText(subnet) }] },
          Labels: { [label.installation]: installation, [label.project]: project },
        };
        const { Id } = await client.change(client.timeouts.change, 'start_failed', (signal) =>
          client.docker.request<{ Id: string }>('POST', '/networks/create', { body, signal }),
        );
        return { id: Id, subnet };
      } catch (error) {
        if (isErrorResponse(error, 409)) return null;
        // Another process took it meanwhile.
        if (!isErrorResponse(error) || !/overlap|already (used|allocated|in use)/i.test(error.message)) throw error;
      }
    }
    throw new EngineError('start_failed', 'no subnet is left for the network of the project (SLUICE_DOCKER_NETWORKS)');
  }

  #find(name: string): Promise<NetworkInfo | null> {
    const { docker, call, timeouts } = this.#parts.client;
    return nullOnStatus([404], () =>
      call(timeouts.read, 'unavailable', (signal) =>
        docker.request<NetworkInfo>('GET', `/networks/${encodeURIComponent(name)}`, { signal }),
      ),
    );
  }

  async #subnets(): Promise<Range[]> {
    const { docker, call, timeouts } = this.#parts.client;
    const all = await call(timeouts.read, 'unavailable', (signal) =>
      docker.request<NetworkInfo[]>('GET', '/networks', { signal }),
    );
    return all.flatMap(({ IPAM }) => (IPAM?.Config ?? []).flatMap(({ Subnet }) => parseRange(Subnet ?? '') ?? []));
  }

  /** `projects`: those that have containers. Only a network that is idle twice in a row goes: one may just be starting. */
  async sweep(projects: ReadonlySet<string>, nowMs: number): Promise<void> {
    const { client, installation, sweepEveryMs } = this.#parts;
    if (nowMs < this.#sweepAt) return;
    this.#sweepAt = nowMs + sweepEveryMs;
    const filters = { label: [labelFilter(installation)] };
    const own = await client.call(client.timeouts.read, 'unavailable', (signal) =>
      client.docker.request<NetworkInfo[]>('GET', '/networks', { query: { filters }, signal }),
    );
    const idle = own.filter(
      ({ Name, Labels }) => !projects.has(Labels?.[label.project] ?? '') && !this.#making.has(Name),
    );
    const before = this.#idle;
    this.#idle = new Set(idle.map(({ Name }) => Name));
    for (const { Id, Name } of idle) {
      if (before.has(Name)) await this.#remove(Id);
    }
  }

  /** Docker refuses while something is connected to it. */
  async #remove(id: string): Promise<void> {
    const { docker, change, timeouts } = this.#parts.client;
    await nullOnStatus([403, 404, 409], () =>
      change(timeouts.change, 'unavailable', (signal) => docker.request('DELETE', `/networks/${id}`, { signal })),
    );
  }
}

/** Of an engine on this machine, it is wise to keep clear of them; for one elsewhere it does no harm. */
function ownRoutes(): Route[] {
  try {
    return parseRoutes(readFileSync('/proc/net/route', 'utf8'));
  } catch {
    return [];
  }
}

import type { Log } from '../../../lib/log.ts';
import type { InstanceEngine } from '../../single-instances.ts';
import { defaultDockerSocket, reachOf } from '../address.ts';
import { createDockerEngine, type DockerOptions } from '../docker.ts';
import { createDockerHosts } from './hosts.ts';

/** A host that does not answer whether it lives within this time is away. */
const probeMs = 3000;

export async function openDockerHosts(options: DockerOptions[], graceMs: number, log?: Log): Promise<InstanceEngine> {
  const names = hostNames(options.map(({ address }) => address ?? defaultDockerSocket));
  const engines = await Promise.all(
    options.map(async (host, turn) => ({
      name: names[turn]!,
      engine: await createDockerEngine({ ...host, turn, timeouts: { probe: probeMs, ...host.timeouts } }),
    })),
  );
  return createDockerHosts({ engines, graceMs, log });
}

/** The machine of each, or the address where one machine has several. */
export function hostNames(addresses: string[]): string[] {
  const nodes = addresses.map((address) => reachOf(address).node);
  return addresses.map((address, i) => {
    const isOnly = nodes.filter((node) => node === nodes[i]).length === 1;
    return isOnly ? nodes[i]! : (address.split('?')[0] ?? address);
  });
}

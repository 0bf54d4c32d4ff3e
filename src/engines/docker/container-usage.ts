// What containers use, from Docker's statistics. They are asked for a few at a time and for a few seconds in all: a
// measurement that comes every ten seconds may miss some containers, and must not wait.
import type { InstanceUsage } from '../engine.ts';
import { containerName } from './container.ts';
import type { DockerClient } from './docker-client.ts';

const atOnce = 8;

/** As far as it is needed; Docker leaves out what the kernel does not say, and for a container that has ended all of it. */
export interface ContainerStats {
  cpu_stats?: { cpu_usage?: { total_usage?: number } };
  memory_stats?: { usage?: number; stats?: { inactive_file?: number; total_inactive_file?: number } };
}

export async function readUsage(
  client: DockerClient,
  installation: string,
  ids: string[],
): Promise<Map<string, InstanceUsage>> {
  const usage = new Map<string, InstanceUsage>();
  const waiting = [...ids];
  const giveUpAt = performance.now() + 2 * client.timeouts.usage;
  const askSome = async () => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      if (performance.now() > giveUpAt) return;
      const stats = await askStats(client, containerName(installation, id));
      const used = stats && usageOf(stats);
      if (used) usage.set(id, used);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, askSome));
  return usage;
}

/** null: it is gone, or Docker did not say in time. One hanging container says nothing about the others. */
async function askStats({ docker, call, timeouts }: DockerClient, name: string): Promise<ContainerStats | null> {
  const query = { stream: false, 'one-shot': true };
  const asking = call(timeouts.usage, 'unavailable', (signal) =>
    docker.request<ContainerStats>('GET', `/containers/${name}/stats`, { query, signal }),
  );
  return asking.catch(() => null);
}

/** Cached files that the kernel would give up first are not what the program needs: `docker stats` leaves them out too. */
export function usageOf({ cpu_stats, memory_stats }: ContainerStats): InstanceUsage | null {
  const { usage, stats = {} } = memory_stats ?? {};
  const cpuNs = cpu_stats?.cpu_usage?.total_usage;
  if (usage === undefined || cpuNs === undefined) return null;
  const cached = stats.inactive_file ?? stats.total_inactive_file ?? 0;
  return { memoryBytes: Math.max(0, usage - cached), cpuMs: Math.round(cpuNs / 1e6) };
}

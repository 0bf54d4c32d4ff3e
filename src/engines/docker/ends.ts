// Which containers ended because Docker itself did. Docker ends its containers when it stops; after it was killed, it ends
// them when it starts again. Either way that is before it makes its default network, which it makes anew at every start.
import type { ContainerInfo, ContainerInspectInfo, NetworkInspectInfo } from 'dockerode';
import { type DockerClient, get, unless } from './client.ts';

const atOnce = 20;

/** Gives those of the containers, which have all ended, that ended with the engine. Each is asked about once. */
export function createEnds(client: DockerClient): (ended: ContainerInfo[]) => Promise<ReadonlySet<string>> {
  let known = new Map<string, boolean>();
  return async (ended) => {
    const fresh = ended.filter(({ Id }) => !known.has(Id));
    const startedAt = fresh.length > 0 ? await engineStartedAt(client) : null;
    const asked = new Map(known);
    for (let first = 0; first < fresh.length; first += atOnce) {
      const some = fresh.slice(first, first + atOnce).map(async ({ Id }) => {
        const finishedAt = startedAt === null ? null : await containerFinishedAt(client, Id);
        asked.set(Id, startedAt !== null && finishedAt !== null && finishedAt <= startedAt);
      });
      await Promise.all(some);
    }
    known = new Map(ended.map(({ Id }) => [Id, asked.get(Id) ?? false]));
    return new Set(ended.filter(({ Id }) => known.get(Id)).map(({ Id }) => Id));
  };
}

/** Null where there is no such network, as with Podman, whose containers do not end with it. */
async function engineStartedAt({ docker, call, timeouts }: DockerClient): Promise<number | null> {
  const network = await unless([404], () =>
    call(timeouts.read, 'unavailable', (abortSignal) =>
      get<NetworkInspectInfo>(docker, '/networks/bridge', abortSignal),
    ),
  );
  return network ? timeOf(network.Created) : null;
}

async function containerFinishedAt({ docker, call, timeouts }: DockerClient, id: string): Promise<number | null> {
  const container = await unless([404], () =>
    call(timeouts.read, 'unavailable', (abortSignal) =>
      get<ContainerInspectInfo>(docker, `/containers/${id}/json`, abortSignal),
    ),
  );
  return container ? timeOf(container.State.FinishedAt) : null;
}

/** Docker writes nanoseconds; Date.parse is only sure to read milliseconds. Null if it says none. */
function timeOf(text: string): number | null {
  const at = Date.parse(text.replace(/(\.\d{3})\d+/, '$1'));
  return at > 0 ? at : null;
}

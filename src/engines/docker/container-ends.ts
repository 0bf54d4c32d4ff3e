// How containers ended: by themselves, out of memory, killed, or together with Docker itself. Docker ends its containers
// when it stops; after it was killed, it ends them when it starts again. Either way that is before it creates its
// default network, which it does at every start. Docker's event stream reports an end at once.
import type { EngineChange } from '../engine.ts';
import { type ContainerEnd, labelFilter, ownerOf } from './container.ts';
import type { ContainerInfo, ContainerInspectInfo, NetworkInfo } from './docker-api.ts';
import { type DockerClient, jsonLines, nullOnStatus } from './docker-client.ts';

const atOnce = 20;
const mib = 1024 * 1024;
/** 128 + SIGKILL, and 128 + SIGTERM. */
const killed = 137;
const signalled = [killed, 143];
/** How far the news of a lack of memory and of the end may be apart. */
const aroundEndMs = 500;

type Ends = ReadonlyMap<string, ContainerEnd>;

/** Gives how the containers, which have all ended, did, by their id. Each is asked about once. */
export function createEnds(client: DockerClient): (ended: ContainerInfo[]) => Promise<Ends> {
  let known: Ends = new Map();
  return async (ended) => {
    const unknown = ended.filter(({ Id }) => !known.has(Id));
    const startedAt = unknown.length > 0 ? await engineStartedAt(client) : null;
    const asked = new Map(known);
    for (let first = 0; first < unknown.length; first += atOnce) {
      const some = unknown.slice(first, first + atOnce).map(async ({ Id }) => {
        const end = await endOf(client, Id, startedAt);
        if (end) asked.set(Id, end);
      });
      await Promise.all(some);
    }
    known = new Map(ended.flatMap(({ Id }) => (asked.has(Id) ? [[Id, asked.get(Id)!] as const] : [])));
    return known;
  };
}

/** Null if the container is gone by now. */
async function endOf(client: DockerClient, id: string, engineStartedAt: number | null): Promise<ContainerEnd | null> {
  const container = await nullOnStatus([404], () =>
    client.call(client.timeouts.read, 'unavailable', (signal) =>
      client.docker.request<ContainerInspectInfo>('GET', `/containers/${id}/json`, { signal }),
    ),
  );
  if (!container) return null;
  const { State, HostConfig } = container;
  const at = timeOf(State.FinishedAt);
  const withEngine = engineStartedAt !== null && at !== null && at <= engineStartedAt;
  const isSaid = State.OOMKilled && State.ExitCode !== 0;
  // Those that ended with the engine are many, and its events are gone.
  const mayBeUnsaid = State.ExitCode === killed && !withEngine && at !== null;
  const outOfMemory = isSaid || (mayBeUnsaid && (await ranOutOfMemory(client, id, at)));
  return {
    at,
    withEngine,
    reason: outOfMemory ? 'out_of_memory' : signalled.includes(State.ExitCode) ? 'killed' : 'exited',
    memoryLimitMb: HostConfig.Memory ? Math.round(HostConfig.Memory / mib) : null,
  };
}

/**
 * Docker hears of a lack of memory and of the end on two ways, and where the end comes first its record does not say why.
 * Its latest events do.
 */
async function ranOutOfMemory({ docker, call, timeouts }: DockerClient, id: string, endedAt: number): Promise<boolean> {
  const filters = { type: ['container'], event: ['oom'], container: [id] };
  // By Docker's clock; it waits for events until then.
  const query = { filters, since: (endedAt - aroundEndMs) / 1000, until: (endedAt + aroundEndMs) / 1000 };
  const asking = call(timeouts.read, 'unavailable', async (signal) => {
    const events = await docker.stream('GET', '/events', { query, signal });
    for await (const _ of jsonLines<object>(events)) return true;
    return false;
  });
  return asking.catch(() => false);
}

/** Null where there is no such network, as with Podman, whose containers do not end with it. */
async function engineStartedAt({ docker, call, timeouts }: DockerClient): Promise<number | null> {
  const network = await nullOnStatus([404], () =>
    call(timeouts.read, 'unavailable', (signal) => docker.request<NetworkInfo>('GET', '/networks/bridge', { signal })),
  );
  return network ? timeOf(network.Created) : null;
}

/** Docker writes nanoseconds; Date.parse is only sure to read milliseconds. Null if it says none. */
function timeOf(text: string): number | null {
  const at = Date.parse(text.replace(/(\.\d{3})\d+/, '$1'));
  return at > 0 ? at : null;
}

const retryMs = 500;

interface ContainerEvent {
  Actor?: { Attributes?: Record<string, string> };
}

/** Follows the event stream. It also reports a restart of Docker, which cuts the stream. Returns what ends it. */
export function watchEvents(
  { docker, timeouts, closing }: DockerClient,
  installation: string,
  onChange: (change: EngineChange) => void,
): () => void {
  const ended = new AbortController();
  const filters = { type: ['container'], event: ['die'], label: [labelFilter(installation)] };
  let timer: NodeJS.Timeout | null = null;
  let wasCut = false;

  const follow = async () => {
    const connecting = new AbortController();
    const giveUp = setTimeout(() => connecting.abort(), timeouts.read);
    const signal = AbortSignal.any([ended.signal, closing, connecting.signal]);
    try {
      const stream = await docker.stream('GET', '/events', { query: { filters }, signal });
      clearTimeout(giveUp);
      if (wasCut) onChange(null);
      wasCut = true;
      for await (const event of jsonLines<ContainerEvent>(stream)) onChange(ownerOf(event.Actor?.Attributes ?? {}));
    } finally {
      clearTimeout(giveUp);
    }
  };
  const again = async () => {
    // Why it was cut does not matter: availability is measured elsewhere.
    await follow().catch(() => {});
    if (!ended.signal.aborted && !closing.aborted) timer = setTimeout(() => void again(), retryMs).unref();
  };
  void again();
  return () => {
    ended.abort();
    if (timer) clearTimeout(timer);
  };
}

// Whether Docker answers the calls that we need. Its `/_ping` says little: it is answered while all else hangs, for example
// behind a storage or network plug-in that does not respond.
import { type DockerClient, unless } from './client.ts';

/** Reads what every look reads, but only one of it. */
export async function probeReads({ docker, call, timeouts }: DockerClient): Promise<void> {
  await call(timeouts.probe, 'unavailable', (abortSignal) =>
    docker.listContainers({ all: true, limit: 1, abortSignal }),
  );
}

const noSuchImage = `sluice.invalid/none@sha256:${'0'.repeat(64)}`;

/** Asks for a container of an image that cannot exist, which takes the way of every creation up to the image. */
export async function probeChanges({ docker, change, timeouts }: DockerClient): Promise<void> {
  await unless([404], () =>
    change(timeouts.probe, 'unavailable', (abortSignal) => docker.createContainer({ Image: noSuchImage, abortSignal })),
  );
}

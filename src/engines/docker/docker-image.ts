// Pulls images with the credentials of their registry and finds out their digest.
import type { Readable } from 'node:stream';
import type { ImageInspectInfo } from 'dockerode';
import { type ImageReference, nameOf, parseImage, pinImage } from '../../contract/references.ts';
import { EngineError, type ImageAccess, type RegistryAuth } from '../engine.ts';
import { pullError } from '../registry/registry-faults.ts';
import {
  type DockerClient,
  EngineTimeout,
  get,
  isErrorResponse,
  jsonLines,
  messageOf,
  probeReads,
} from './docker-client.ts';

/** Pulls the image and returns its digest. An image given by digest that is already here is not pulled again. */
export async function prepareImage(client: DockerClient, image: string, access: ImageAccess): Promise<string> {
  const reference = parseImage(image);
  if (!reference) throw new EngineError('image_not_found', `${image} is not a reference to an image`);
  if (reference.digest && (await repoDigests(client, pinImage(image, reference.digest)))) {
    if (!access.isKnown) await askRegistry(client, reference, access.login);
    return reference.digest;
  }
  const pulled = await pull(client, reference, access.login);
  return reference.digest ?? pulled ?? (await localDigest(client, reference));
}

/** Docker would not ask for an image that it has. The registry says whether this login may have it. */
async function askRegistry(client: DockerClient, reference: ImageReference, login: RegistryAuth | null): Promise<void> {
  const { docker, call, timeouts } = client;
  const path = `/distribution/${nameOf(reference)}@${reference.digest}/json`;
  try {
    await call(timeouts.pullSilence, 'unavailable', (abortSignal) =>
      get(docker, path, abortSignal, login ? authConfig(login) : undefined),
    );
  } catch (error) {
    if (!isErrorResponse(error)) return whoIsSilent(client, error);
    throw pullError(reference, messageOf(error), error.statusCode, error);
  }
}

/** The TCP ports that an image of the engine declares. */
export async function exposedPorts(client: DockerClient, name: string): Promise<number[]> {
  return tcpPortsOf((await inspectImage(client, name))?.Config?.ExposedPorts);
}

/** Of what an image declares, such as `8080/tcp`. */
export function tcpPortsOf(exposed: Record<string, object> | null | undefined): number[] {
  const ports = Object.keys(exposed ?? {}).flatMap((name) => /^(\d+)(?:\/tcp)?$/.exec(name)?.[1] ?? []);
  return ports.map(Number).sort((a, b) => a - b);
}

/** Null if the engine does not have the image. */
async function repoDigests(client: DockerClient, name: string): Promise<string[] | null> {
  const image = await inspectImage(client, name);
  return image && (image.RepoDigests ?? []);
}

async function inspectImage({ docker, call, timeouts }: DockerClient, name: string): Promise<ImageInspectInfo | null> {
  try {
    return await call(timeouts.read, 'unavailable', (abortSignal) =>
      get<ImageInspectInfo>(docker, `/images/${name}/json`, abortSignal),
    );
  } catch (error) {
    if (isErrorResponse(error, 404)) return null;
    throw error;
  }
}

async function localDigest(client: DockerClient, reference: ImageReference): Promise<string> {
  const name = nameOf(reference);
  for (const candidate of (await repoDigests(client, `${name}:${reference.tag}`)) ?? []) {
    const parsed = parseImage(candidate);
    if (parsed?.digest && nameOf(parsed) === name) return parsed.digest;
  }
  throw new EngineError('unavailable', `Docker pulled ${name}:${reference.tag} but does not say its digest`);
}

interface PullLine {
  status?: string;
  error?: string;
}

/** Returns the digest if the engine reports it: Docker does, Podman does not. */
async function pull(
  client: DockerClient,
  reference: ImageReference,
  auth: RegistryAuth | null,
): Promise<string | null> {
  const { docker, call, timeouts } = client;
  const options = { fromImage: nameOf(reference), tag: reference.digest ?? reference.tag };
  const giveUpAt = performance.now() + timeouts.pull;
  let digest: string | null = null;
  const pulling = call(timeouts.pullSilence, 'unavailable', async (abortSignal, alive) => {
    try {
      const stream = await docker.createImage(auth ? authConfig(auth) : undefined, { ...options, abortSignal });
      for await (const { status, error } of jsonLines<PullLine>(stream as Readable)) {
        alive();
        if (error !== undefined) throw pullError(reference, error, null);
        if (performance.now() > giveUpAt) throw new EngineError('unavailable', `not pulled in ${timeouts.pull} ms`);
        digest = /^Digest: (sha256:[0-9a-f]{64})$/.exec(status ?? '')?.[1] ?? digest;
      }
    } catch (error) {
      throw isErrorResponse(error) ? pullError(reference, messageOf(error), error.statusCode, error) : error;
    }
  });
  await pulling.catch((error) => whoIsSilent(client, error));
  return digest;
}

/** Throws: where the engine answers other calls, it is the registry that does not. */
async function whoIsSilent(client: DockerClient, error: unknown): Promise<never> {
  if (!(error instanceof EngineTimeout)) throw error;
  const answers = await probeReads(client).then(
    () => true,
    () => false,
  );
  const waitedS = Math.round(client.timeouts.pullSilence / 1000);
  throw answers ? new EngineError('registry_failing', `no progress for ${waitedS} s`, error) : error;
}

/** As the engine expects it in its X-Registry-Auth header. */
const authConfig = ({ server, ...login }: RegistryAuth) => ({ ...login, serveraddress: server });

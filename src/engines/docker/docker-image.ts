// Pulls images with the credentials of their registry and finds out their digest.
import {
  type ImageReference,
  keptImageId,
  localDigest,
  nameOf,
  parseImage,
  pinImage,
} from '../../contract/references.ts';
import { EngineError, type ImageAccess, type RegistryAuth } from '../engine.ts';
import { pullError } from '../registry/registry-faults.ts';
import type { ImageInspectInfo } from './docker-api.ts';
import {
  type DockerClient,
  EngineTimeout,
  errorResponse,
  isErrorResponse,
  jsonLines,
  probeReads,
} from './docker-client.ts';

/**
 * Pulls the image and returns its digest. An image given by digest that is already here is not pulled again, nor is one
 * that may be local.
 */
export async function prepareImage(client: DockerClient, image: string, access: ImageAccess): Promise<string> {
  const kept = keptImageId(image);
  if (kept !== null) return keptImage(client, image, kept, access);
  const reference = parseImage(image);
  if (!reference) throw new EngineError('image_not_found', `${image} is not a reference to an image`);
  if (reference.digest && (await repoDigests(client, pinImage(image, reference.digest)))) {
    if (!access.isKnown) await askRegistry(client, reference, access.login);
    return reference.digest;
  }
  const local = access.mayBeLocal && !reference.digest ? await takeLocal(client, reference) : null;
  if (local !== null) return local;
  const pulled = await pull(client, reference, access.login);
  return reference.digest ?? pulled ?? (await digestOfPulled(client, reference));
}

/** Takes the image that has this name now, by its id: under a name of its own it stays when the other is given away. */
async function takeLocal(client: DockerClient, reference: ImageReference): Promise<string | null> {
  const found = await inspectImage(client, `${nameOf(reference)}:${reference.tag}`);
  if (found === null) return null;
  const digest = localDigest(found.Id);
  const [repo, tag] = splitTag(pinImage('', digest));
  await client.call(client.timeouts.read, 'unavailable', (signal) =>
    client.docker.request('POST', `/images/${found.Id}/tag`, { query: { repo, tag }, signal }),
  );
  return digest;
}

const splitTag = (name: string): [string, string] => [
  name.slice(0, name.lastIndexOf(':')),
  name.slice(name.lastIndexOf(':') + 1),
];

/** One that was taken before. Only revisions name it so: a name that a tenant typed leads to no image of the machine. */
async function keptImage(client: DockerClient, image: string, id: string, { isKnown }: ImageAccess): Promise<string> {
  if (isKnown && (await inspectImage(client, image))) return localDigest(id);
  throw new EngineError(
    'image_not_found',
    `the image ${id} was only on the machine of this engine, and is no longer there; build it again and deploy it`,
  );
}

/** Docker would not ask for an image that it has. The registry says whether this login may have it. */
async function askRegistry(client: DockerClient, reference: ImageReference, login: RegistryAuth | null): Promise<void> {
  const { docker, call, timeouts } = client;
  const path = `/distribution/${nameOf(reference)}@${reference.digest}/json`;
  try {
    await call(timeouts.pullSilence, 'unavailable', (signal) =>
      docker.request('GET', path, { ...(login && { login: authConfig(login) }), signal }),
    );
  } catch (error) {
    const refusal = errorResponse(error);
    if (!refusal) return whoIsSilent(client, error);
    throw pullError(reference, refusal.message, refusal.statusCode, error);
  }
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

/** Null if the engine does not have it. */
export async function inspectImage(
  { docker, call, timeouts }: DockerClient,
  name: string,
): Promise<ImageInspectInfo | null> {
  try {
    return await call(timeouts.read, 'unavailable', (signal) =>
      docker.request<ImageInspectInfo>('GET', `/images/${name}/json`, { signal }),
    );
  } catch (error) {
    if (isErrorResponse(error, 404)) return null;
    throw error;
  }
}

async function digestOfPulled(client: DockerClient, reference: ImageReference): Promise<string> {
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
  const query = { fromImage: nameOf(reference), tag: reference.digest ?? reference.tag ?? undefined };
  const giveUpAt = performance.now() + timeouts.pull;
  let digest: string | null = null;
  const pulling = call(timeouts.pullSilence, 'unavailable', async (signal, alive) => {
    try {
      const login = auth && { login: authConfig(auth) };
      const stream = await docker.stream('POST', '/images/create', { query, ...login, signal });
      for await (const { status, error } of jsonLines<PullLine>(stream)) {
        alive();
        if (error !== undefined) throw pullError(reference, error, null);
        if (performance.now() > giveUpAt) throw new EngineError('unavailable', `not pulled in ${timeouts.pull} ms`);
        digest = /^Digest: (sha256:[0-9a-f]{64})$/.exec(status ?? '')?.[1] ?? digest;
      }
    } catch (error) {
      const refusal = errorResponse(error);
      throw refusal ? pullError(reference, refusal.message, refusal.statusCode, error) : error;
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

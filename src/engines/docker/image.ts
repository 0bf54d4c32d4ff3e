// Pulls images with the credentials of their registry and finds out their digest.
import type { Readable } from 'node:stream';
import type { ImageInspectInfo } from 'dockerode';
import { type ImageReference, nameOf, parseImage, pinImage } from '../../contract/image-reference.ts';
import { EngineError, type EngineFault } from '../engine.ts';
import { type RegistryAuth, type RegistryAuths, RegistryConfigError } from '../registry/auths.ts';
import { type DockerClient, get, isErrorResponse, messageOf } from './client.ts';

/** Pulls the image and returns its digest. An image given by digest that is already here is not pulled again. */
export async function prepareImage(client: DockerClient, image: string, auths: () => RegistryAuths): Promise<string> {
  const reference = parseImage(image);
  if (!reference) throw new EngineError('image_not_found', `${image} is not a reference to an image`);
  if (reference.digest && (await repoDigests(client, pinImage(image, reference.digest)))) {
    return reference.digest;
  }
  const pulled = await pull(client, reference, credentialsFor(reference.registry, auths));
  return reference.digest ?? pulled ?? (await localDigest(client, reference));
}

function credentialsFor(registry: string, auths: () => RegistryAuths): RegistryAuth | undefined {
  try {
    return auths().get(registry);
  } catch (error) {
    if (error instanceof RegistryConfigError) throw new EngineError('unavailable', error.message, error);
    throw error;
  }
}

/** Null if the engine does not have the image. */
async function repoDigests({ docker, call, timeouts }: DockerClient, name: string): Promise<string[] | null> {
  try {
    const image = await call(timeouts.read, 'unavailable', (abortSignal) =>
      get<ImageInspectInfo>(docker, `/images/${name}/json`, abortSignal),
    );
    return image.RepoDigests ?? [];
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
async function pull(client: DockerClient, reference: ImageReference, auth?: RegistryAuth): Promise<string | null> {
  const { docker, call, timeouts } = client;
  const options = { fromImage: nameOf(reference), tag: reference.digest ?? reference.tag };
  const giveUpAt = performance.now() + timeouts.pull;
  let digest: string | null = null;
  await call(timeouts.pullSilence, 'unavailable', async (abortSignal, alive) => {
    try {
      const stream = await docker.createImage(auth && authConfig(auth), { ...options, abortSignal });
      for await (const { status, error } of linesOf(stream as Readable)) {
        alive();
        if (error !== undefined) throw pullError(reference, error, null);
        if (performance.now() > giveUpAt) throw new EngineError('unavailable', `not pulled in ${timeouts.pull} ms`);
        digest = /^Digest: (sha256:[0-9a-f]{64})$/.exec(status ?? '')?.[1] ?? digest;
      }
    } catch (error) {
      throw isErrorResponse(error) ? pullError(reference, messageOf(error), error.statusCode, error) : error;
    }
  });
  return digest;
}

/** As the engine expects it in its X-Registry-Auth header. */
const authConfig = ({ server, ...login }: RegistryAuth) => ({ ...login, serveraddress: server });

async function* linesOf(stream: Readable): AsyncGenerator<PullLine> {
  let rest = '';
  for await (const chunk of stream.setEncoding('utf8')) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    yield* lines.filter((line) => line.trim() !== '').map(parseLine);
  }
  if (rest.trim() !== '') yield parseLine(rest);
}

function parseLine(line: string): PullLine {
  try {
    return JSON.parse(line) as PullLine;
  } catch (error) {
    throw new EngineError('unavailable', 'Docker broke off in the middle of a pull', error);
  }
}

function pullError(reference: ImageReference, message: string, statusCode: number | null, cause?: unknown) {
  return new EngineError(pullFault(reference, message, statusCode), message, cause);
}

/**
 * Docker and Podman pass on the registry's response only as text. "Denied, or does not exist", which Docker Hub sends to
 * anyone without a login, counts as denied. Anything else is a problem of the registry or the engine and may go away.
 */
export function pullFault(reference: ImageReference, message: string, statusCode: number | null): EngineFault {
  // Removes the image's name first: it may itself contain such words, as in team/unauthorized.
  const names = [nameOf(reference), reference.repository, reference.repository.replace(/^library\//, '')];
  const said = names.reduce((text, name) => text.replaceAll(name, ''), message);
  if (/\bdenied\b|unauthorized|authentication required|authorization failed|no basic auth|forbidden/i.test(said)) {
    return 'image_denied';
  }
  if (/manifest unknown|name unknown|not found|no matching manifest|no image found|does not exist/i.test(said)) {
    return 'image_not_found';
  }
  return statusCode === 404 ? 'image_not_found' : 'unavailable';
}

// Asks registries about images, by the OCI distribution specification: which digest a tag has, and how an image wants to be
// run. Nothing is pulled here.
import { type ImageReference, parseImage } from '../../contract/references.ts';
import { EngineError, type RegistryAuth } from '../engine.ts';
import { authorize } from './registry-auth.ts';
import { type Endpoint, endpointsOf, type Mirrors } from './registry-endpoints.ts';
import { refusal } from './registry-faults.ts';
import { type Answer, type RegistryHttp, registryHttp, sha256 } from './registry-http.ts';

interface RegistryOptions {
  mirrors?: Mirrors;
  /** Of each question as a whole, with its token and redirects. */
  timeoutMs?: number;
  /** Whose user and ports are read where an image has several platforms. */
  architecture?: string;
}

export interface Registry {
  /** The digest that the reference has now. An EngineError says why there is none. */
  resolve(image: string, login: RegistryAuth | null): Promise<{ digest: string }>;
  /** Of the image with this digest. */
  config(image: string, digest: string, login: RegistryAuth | null): Promise<ImageConfig>;
  close(): Promise<void>;
}

const maxManifestBytes = 4 * 1024 * 1024;
const maxConfigBytes = 4 * 1024 * 1024;

/** A request to one endpoint about one repository, with the authorization that it asked for so far. */
interface RegistrySession {
  http: RegistryHttp;
  endpoint: Endpoint;
  reference: ImageReference;
  login: RegistryAuth | null;
  signal: AbortSignal;
  authorization: string | null;
}

export function createRegistry({
  mirrors = new Map(),
  timeoutMs = 30_000,
  architecture = 'amd64',
}: RegistryOptions = {}): Registry {
  const http = registryHttp('sluice', timeoutMs);

  /** Mirrors may lack an image or be away; what the registry itself says counts. */
  const ask = async <T>(
    image: string,
    login: RegistryAuth | null,
    work: (session: RegistrySession) => Promise<T>,
  ): Promise<T> => {
    const reference = parseImage(image);
    if (!reference) throw new EngineError('image_not_found', `${image} is not a reference to an image`);
    const endpoints = endpointsOf(reference, mirrors);
    for (const endpoint of endpoints) {
      const own = endpoint.isMirror ? null : login;
      const signal = AbortSignal.timeout(timeoutMs);
      try {
        return await work({ http, endpoint, reference, login: own, signal, authorization: null });
      } catch (error) {
        if (!endpoint.isMirror || !(error instanceof EngineError)) throw error;
      }
    }
    throw new TypeError('every registry has an endpoint of its own');
  };

  return {
    resolve: (image, login) => ask(image, login, async (session) => ({ digest: await resolveDigest(session) })),
    config: (image, digest, login) => ask(image, login, (session) => readConfig(session, digest, architecture)),
    close: () => http.close(),
  };
}

/** Asks for the head alone, which registries do not count as a pull; some leave out the digest there. */
async function resolveDigest(session: RegistrySession): Promise<string> {
  const { tag, digest } = session.reference;
  const name = digest ?? tag!;
  const head = await request(session, 'HEAD', `manifests/${name}`, 0);
  const stated = head.headers['docker-content-digest'];
  if (head.status === 200 && isDigest(stated)) return requireSame(digest, stated);
  const { status } = head;
  if (status === 404 || status === 429 || status === 401 || status === 403) throw refusalOf(session, head);
  return requireSame(digest, sha256(await read(session, `manifests/${name}`, maxManifestBytes)));
}

function requireSame(wanted: string | null, found: string): string {
  if (wanted === null || wanted === found) return found;
  throw new EngineError('registry_failing', `the registry gave ${found} when asked for ${wanted}`);
}

async function readConfig(session: RegistrySession, digest: string, architecture: string): Promise<ImageConfig> {
  const manifest = parseManifest(await readExactly(session, 'manifests', digest, maxManifestBytes));
  if (manifest.kind === 'image') {
    return parseConfig(await readExactly(session, 'blobs', manifest.config, maxConfigBytes));
  }
  const image = pickImage(manifest.images, architecture);
  if (image === null) throw new EngineError('image_not_found', 'the image is for no platform with Linux');
  const own = parseManifest(await readExactly(session, 'manifests', image, maxManifestBytes));
  if (own.kind !== 'image') throw new EngineError('image_not_found', 'the image is a list of lists');
  return parseConfig(await readExactly(session, 'blobs', own.config, maxConfigBytes));
}

async function readExactly(
  session: RegistrySession,
  what: 'manifests' | 'blobs',
  digest: string,
  maxBytes: number,
): Promise<Buffer> {
  const body = await read(session, `${what}/${digest}`, maxBytes);
  requireSame(digest, sha256(body));
  return body;
}

async function read(session: RegistrySession, path: string, maxBytes: number): Promise<Buffer> {
  const answer = await request(session, 'GET', path, maxBytes);
  if (answer.status !== 200) throw refusalOf(session, answer);
  return answer.body;
}

const refusalOf = ({ reference, endpoint, login }: RegistrySession, answer: Answer): EngineError =>
  refusal(reference, endpoint.origin, answer, login !== null);

/** Answers the challenge of the registry, if it has one, and asks again. */
async function request(
  session: RegistrySession,
  method: 'GET' | 'HEAD',
  path: string,
  maxBytes: number,
): Promise<Answer> {
  const { http, endpoint, reference, login, signal } = session;
  const url = new URL(`/v2/${reference.repository}/${path}`, endpoint.origin);
  const send = () =>
    http.ask(url, {
      method,
      headers: {
        ...(path.startsWith('manifests/') && { accept: manifestTypes.join(', ') }),
        ...(session.authorization !== null && { authorization: session.authorization }),
      },
      // A refusal says why in its body.
      maxBytes: Math.max(maxBytes, 64 * 1024),
      signal,
    });
  const answer = await send();
  if (answer.status !== 401 || session.authorization !== null) return answer;
  session.authorization = await authorize(http, { reference, from: url, answer, login }, signal);
  return session.authorization === null ? answer : send();
}

/** In the order of preference; `docker` types are what most registries still have. */
const manifestTypes = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
];

interface Descriptor {
  digest: string;
  platform?: { os?: string; architecture?: string };
}

/** A manifest is of one image, or a list of one image per platform. */
type Manifest = { kind: 'image'; config: string } | { kind: 'list'; images: Descriptor[] };

const isDigest = (text: unknown): text is string => typeof text === 'string' && /^sha256:[0-9a-f]{64}$/.test(text);

function parseManifest(body: Buffer): Manifest {
  const parsed = parseObject(body);
  const { manifests, config } = parsed as { manifests?: unknown; config?: { digest?: unknown } };
  if (Array.isArray(manifests)) {
    return { kind: 'list', images: manifests.filter((entry): entry is Descriptor => isDigest(entry?.digest)) };
  }
  if (isDigest(config?.digest)) return { kind: 'image', config: config.digest };
  throw new EngineError('image_not_found', 'the registry has something under this name that is no image');
}

/** The image of a list to read about: that of this architecture, else the first for Linux. */
function pickImage(images: Descriptor[], architecture: string): string | null {
  const linux = images.filter(({ platform }) => (platform?.os ?? 'linux') === 'linux');
  const own = linux.find(({ platform }) => platform?.architecture === architecture);
  return (own ?? linux[0])?.digest ?? null;
}

/** What an image says about how it wants to be run. */
interface ImageConfig {
  /** As `USER` has it: a name, a number, either with a group; empty: root. */
  user: string;
  /** TCP ports that it says it listens on. */
  ports: number[];
}

function parseConfig(body: Buffer): ImageConfig {
  const { config } = parseObject(body) as { config?: { User?: unknown; ExposedPorts?: unknown } | null };
  const ports = Object.keys((config?.ExposedPorts as object | undefined) ?? {});
  return {
    user: typeof config?.User === 'string' ? config.User : '',
    ports: ports.flatMap((port) => (/^\d{1,5}(\/tcp)?$/.test(port) ? [Number.parseInt(port, 10)] : [])),
  };
}

function parseObject(body: Buffer): object {
  try {
    const parsed = JSON.parse(body.toString('utf8'));
    if (typeof parsed === 'object' && parsed !== null) return parsed;
  } catch {}
  throw new EngineError('registry_failing', 'the registry gave an answer that is not JSON');
}

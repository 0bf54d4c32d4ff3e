// Manifests as registries store them: of one image, or a list of one image per platform.
import { EngineError } from '../engine.ts';

/** In the order of preference; `docker` types are what most registries still have. */
export const manifestTypes = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
];

interface Descriptor {
  digest: string;
  platform?: { os?: string; architecture?: string };
}

export type Manifest = { kind: 'image'; config: string } | { kind: 'list'; images: Descriptor[] };

export const isDigest = (text: unknown): text is string =>
  typeof text === 'string' && /^sha256:[0-9a-f]{64}$/.test(text);

export function parseManifest(body: Buffer): Manifest {
  const parsed = parseObject(body);
  const { manifests, config } = parsed as { manifests?: unknown; config?: { digest?: unknown } };
  if (Array.isArray(manifests)) {
    return { kind: 'list', images: manifests.filter((entry): entry is Descriptor => isDigest(entry?.digest)) };
  }
  if (isDigest(config?.digest)) return { kind: 'image', config: config.digest };
  throw new EngineError('image_not_found', 'the registry has something under this name that is no image');
}

/** The image of a list to read about: that of this architecture, else the first for Linux. */
export function pickImage(images: Descriptor[], architecture: string): string | null {
  const linux = images.filter(({ platform }) => (platform?.os ?? 'linux') === 'linux');
  const own = linux.find(({ platform }) => platform?.architecture === architecture);
  return (own ?? linux[0])?.digest ?? null;
}

/** What an image says about how it wants to be run. */
export interface ImageConfig {
  /** As `USER` has it: a name, a number, either with a group; empty: root. */
  user: string;
  /** TCP ports that it says it listens on. */
  ports: number[];
}

export function parseConfig(body: Buffer): ImageConfig {
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

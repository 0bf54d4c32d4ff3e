// How images and revisions are named. Image references follow Docker's rules: `name`, `name:tag`,
// `registry:port/path/name@sha256:…`.

export interface ImageReference {
  /** `docker.io` if the reference names none. */
  registry: string;
  /** With `library/` in front for official images of Docker Hub. */
  repository: string;
  /** `latest` without tag and digest; null with only a digest. */
  tag: string | null;
  digest: string | null;
}

const hub = 'docker.io';
const domain =
  /^(?:\[[0-9a-fA-F:]+\]|[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*)(?::\d{1,5})?$/;
const pathPart = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const maxNameLength = 255;
const maxLength = maxNameLength + ':'.length + 128 + '@sha256:'.length + 64;

/** Null if the text is not a reference. */
export function parseImage(text: string): ImageReference | null {
  if (text.length > maxLength) return null;
  const parts = /^([^@]+?)(?::(\w[\w.-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$/.exec(text);
  if (!parts) return null;
  const [, name = '', tag = null, digest = null] = parts;
  const { registry, repository } = splitName(name);
  if (registry.length + 1 + repository.length > maxNameLength || !domain.test(registry)) return null;
  if (!repository.split('/').every((part) => pathPart.test(part))) return null;
  // Docker reads 64 hexadecimal digits, alone or as a bare digest, as an image id, not as a name.
  if (/^(sha256:)?[0-9a-f]{64}$/.test(text)) return null;
  return { registry, repository, tag: tag ?? (digest === null ? 'latest' : null), digest };
}

/** As `docker run` does it: what has no registry in its name is most often what has just been built. */
export const usualPull = (image: string): 'missing' | undefined => (image.includes('/') ? undefined : 'missing');

/** The part before the first slash is a registry only if it could not be part of a path. */
function splitName(name: string): { registry: string; repository: string } {
  const slash = name.indexOf('/');
  const first = name.slice(0, Math.max(slash, 0));
  const isRegistry = /[.:A-Z]/.test(first) || first === 'localhost';
  const registry = isRegistry ? first : hub;
  const repository = isRegistry ? name.slice(slash + 1) : name;
  if (registry !== hub && registry !== `index.${hub}`) return { registry, repository };
  return { registry: hub, repository: repository.includes('/') ? repository : `library/${repository}` };
}

/** The full name, without tag or digest. */
export function nameOf({ registry, repository }: ImageReference): string {
  return `${registry}/${repository}`;
}

const localMark = 'local:';
/** Images that only an engine has, under a name that says their id and keeps them from being pruned. No registry has that name. */
const keptName = 'sluice.local/image';

/** How the digest of a revision is stored whose image was taken from the engine as it was, by its id there. */
export const localDigest = (imageId: string): string => `${localMark}${imageId}`;

/** The id of an image that was taken from the engine; null: it was pulled. */
export const imageIdOf = (digest: string): string | null =>
  digest.startsWith(localMark) ? digest.slice(localMark.length) : null;

/** The id in the name under which such an image is kept; null for every other reference. */
export function keptImageId(image: string): string | null {
  const hex = new RegExp(`^${keptName.replaceAll('.', '\\.')}:([0-9a-f]{64})$`).exec(image)?.[1];
  return hex === undefined ? null : `sha256:${hex}`;
}

/** Exactly this image, whatever its tag points to now: the full name with the digest. Throws if `image` is not a reference. */
export function pinImage(image: string, digest: string): string {
  const imageId = imageIdOf(digest);
  if (imageId !== null) return `${keptName}:${imageId.replace(/^sha256:/, '')}`;
  const reference = parseImage(image);
  if (!reference) throw new TypeError(`${image} is not an image reference`);
  return `${nameOf(reference)}@${digest}`;
}

/** A revision is `r` and its number, counted per environment. */
export const revisionId = (number: number): string => `r${number}`;

export const revisionNumber = (id: string): number => Number(id.slice(1));

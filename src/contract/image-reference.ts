// References to images, by the rules of Docker: `name`, `name:tag`, `registry:port/path/name@sha256:…`.

export interface ImageReference {
  /** `docker.io` where none is named. */
  registry: string;
  /** With `library/` in front where Docker Hub has it. */
  repository: string;
  /** `latest` where neither tag nor digest is given; null with a digest alone. */
  tag: string | null;
  digest: string | null;
}

const hub = 'docker.io';
const domain =
  /^(?:\[[0-9a-fA-F:]+\]|[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*)(?::\d{1,5})?$/;
const pathPart = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const maxNameLength = 255;
const maxLength = maxNameLength + ':'.length + 128 + '@sha256:'.length + 64;

/** null: not a reference. */
export function parseImage(text: string): ImageReference | null {
  if (text.length > maxLength) return null;
  const parts = /^([^@]+?)(?::(\w[\w.-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$/.exec(text);
  if (!parts) return null;
  const [, name = '', tag = null, digest = null] = parts;
  const { registry, repository } = splitName(name);
  if (registry.length + 1 + repository.length > maxNameLength || !domain.test(registry)) return null;
  if (!repository.split('/').every((part) => pathPart.test(part))) return null;
  // Docker takes 64 hexadecimal digits, alone or as a bare digest, for the id of an image, which is no name.
  if (/^(sha256:)?[0-9a-f]{64}$/.test(text)) return null;
  return { registry, repository, tag: tag ?? (digest === null ? 'latest' : null), digest };
}

/** What is before the first slash is a registry only if it cannot be part of a path. */
function splitName(name: string): { registry: string; repository: string } {
  const slash = name.indexOf('/');
  const first = name.slice(0, Math.max(slash, 0));
  const isRegistry = /[.:A-Z]/.test(first) || first === 'localhost';
  const registry = isRegistry ? first : hub;
  const repository = isRegistry ? name.slice(slash + 1) : name;
  if (registry !== hub && registry !== `index.${hub}`) return { registry, repository };
  return { registry: hub, repository: repository.includes('/') ? repository : `library/${repository}` };
}

/** The name in full, without tag or digest. */
export function nameOf({ registry, repository }: ImageReference): string {
  return `${registry}/${repository}`;
}

/** A slug made from a name: ASCII letters and digits, the rest as dashes. */
export function slugOf(name: string): string {
  const plain = name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^[-0-9]+|-+$/g, '')
    .slice(0, 39)
    .replace(/-+$/, '');
  return plain === '' ? 'project' : plain;
}

/** A slug with something behind it, no longer than a slug may be. */
export function suffixed(slug: string, suffix: string): string {
  return slug.slice(0, 39 - suffix.length).replace(/-+$/, '') + suffix;
}

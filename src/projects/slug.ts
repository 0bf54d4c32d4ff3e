/** Derives a slug from a name: ASCII letters and digits, everything else becomes a dash. */
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

/** The slug with a suffix, cut to the length that a slug may have. */
export function suffixed(slug: string, suffix: string): string {
  return slug.slice(0, 39 - suffix.length).replace(/-+$/, '') + suffix;
}

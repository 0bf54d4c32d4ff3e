// A request's target → a path inside the site, or null. What is decoded is decoded once, and whatever could mean another
// place (a step up, a back slash, a dot file, an empty segment) means nothing at all.
const MAX_TARGET = 2048;

export function sitePath(target: string | undefined): string | null {
  if (target === undefined || target.length > MAX_TARGET || !target.startsWith('/')) return null;
  const end = target.search(/[?#]/);
  const raw = end === -1 ? target : target.slice(0, end);
  if (raw === '/') return 'index.html';
  let path = raw;
  if (raw.includes('%')) {
    try {
      path = decodeURIComponent(raw);
    } catch {
      return null;
    }
  }
  if (/[\0-\x1f\x7f\\]/.test(path) || path.includes('//') || path.includes('/.') || path.endsWith('/')) return null;
  return path.slice(1);
}

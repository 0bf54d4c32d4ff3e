// The target of a request → a path relative to the site's root, or null. The target is decoded once, and one that could
// lead elsewhere (a step up, a backslash, a dot file, an empty segment) names no file at all.
const maxTargetLength = 2048;

/** The absolute form of a target (RFC 9112, 3.2.2), which proxies send; a server has to take it like the path in it. */
const absoluteForm = /^https?:\/\/[^/?#]+/i;

function originForm(target: string): string {
  const rest = target.replace(absoluteForm, '');
  return rest.startsWith('/') ? rest : `/${rest}`;
}

export function requestPath(given: string | undefined): string | null {
  if (given === undefined || given.length > maxTargetLength) return null;
  const target = given.startsWith('/') || !absoluteForm.test(given) ? given : originForm(given);
  if (!target.startsWith('/')) return null;
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

// The target of a request → a path relative to the site's root, or null. The target is decoded once, and one that could
// lead elsewhere (a step up, a backslash, a dot file, an empty segment) names no file at all.
import { originForm } from '../http/origin-form.ts';

const maxTargetLength = 2048;

export function requestPath(given: string | undefined): string | null {
  if (given === undefined || given.length > maxTargetLength) return null;
  const target = originForm(given);
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

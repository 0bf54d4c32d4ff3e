// The address below /console: reads it, changes it, matches it against patterns.
import { Cell, useCell } from './cell.ts';

const base = '/console';

function pathNow(): string {
  const path = location.pathname.slice(base.length).replace(/\/+$/, '');
  return path === '' ? '/projects' : path;
}

const current = new Cell(pathNow());
addEventListener('popstate', () => update());

let navigated = false;

/** Whether the current page was reached from another page of the console. */
export const hasNavigated = (): boolean => navigated;

function update(): void {
  navigated = true;
  current.set(pathNow());
}

export const usePath = (): string => useCell(current);

export const hrefOf = (path: string): string => base + path;

export function navigate(path: string): void {
  if (path === current.get() && location.search === '') return;
  const isOtherPage = pageOf(path) !== pageOf(current.get());
  history.pushState(null, '', hrefOf(path));
  if (isOtherPage) scrollTo(0, 0);
  update();
}

function decodeLeniently(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export type Params = Record<string, string>;

/** `/projects/:id` against `/projects/prj_1` → { id: 'prj_1' }; null if it does not match. */
export function matchPath(pattern: string, path: string): Params | null {
  const names = pattern.split('/');
  const parts = path.split('/');
  if (names.length !== parts.length) return null;
  const params: Params = {};
  for (const [index, name] of names.entries()) {
    const part = parts[index]!;
    if (name.startsWith(':')) params[name.slice(1)] = decodeLeniently(part);
    else if (name !== part) return null;
  }
  return params;
}

/** The part of an address that decides which page is shown: the tabs of an environment are one page. */
export const pageOf = (path: string): string => path.replace(/^(\/projects\/[^/]+\/environments\/[^/]+)\/.*/, '$1');

/** Keeps what a page shows in its address, so that it can be sent to others and survives a reload. */
export function replaceQuery(query: Record<string, string | undefined>): void {
  const given = Object.entries(query).filter((entry): entry is [string, string] => !!entry[1]);
  history.replaceState(null, '', location.pathname + (given.length > 0 ? `?${new URLSearchParams(given)}` : ''));
}

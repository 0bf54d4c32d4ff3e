// The pages of docs/ as they are installed, and what is found in them and in the declarations.
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { routes } from '../../contract/api.ts';
import { errorCatalogue } from '../../contract/errors.ts';
import { installDir } from '../../lib/install.ts';
import { escapeHtml, type RenderedPage, renderMarkdown, type Section } from './markdown.ts';

const folder = join(installDir, 'docs');
const guidePath = (name: string): string => `/docs/guides/${name}`;

/** In the order in which they are listed; what is in no group is not of use to who runs or calls a service. */
export const guideGroups: { title: string; names: string[] }[] = [
  { title: 'Start', names: ['installing', 'tour', 'coming-from'] },
  {
    title: 'Use',
    names: [
      'deployments',
      'domains',
      'alerts',
      'logs',
      'webhooks',
      'receivers',
      'catalogue',
      'console',
      'cli',
      'client',
    ],
  },
  {
    title: 'Run',
    names: ['operating', 'settings', 'engines', 'traffic', 'kubernetes', 'kubernetes-install', 'scale', 'threat-model'],
  },
  {
    title: 'Look up',
    names: ['errors', 'events', 'routes', 'scopes', 'benchmarks', 'soak', 'dependencies', 'testing'],
  },
];

const rendered = new Map<string, RenderedPage>();

/** null: there is no such page. Names are those of files, and only of files that are there. */
export function guide(name: string): RenderedPage | null {
  const known = rendered.get(name);
  if (known) return known;
  if (!names().includes(name)) return null;
  const page = renderMarkdown(readFileSync(join(folder, `${name}.md`), 'utf8'), (href) => linkFrom(name, href));
  rendered.set(name, page);
  return page;
}

let found: string[] | null = null;
function names(): string[] {
  found ??= existsSync(folder) ? globSync('**/*.md', { cwd: folder }).map((file) => file.slice(0, -'.md'.length)) : [];
  return found;
}

/** Pages link to each other as files; what else is in a checkout is not on the site. */
function linkFrom(name: string, href: string): string | null {
  if (/^(https?:|#)/.test(href)) return href;
  const [path, anchor] = href.split('#') as [string, string?];
  const target = posix.join(posix.dirname(name), path);
  if (!target.endsWith('.md') || !names().includes(target.slice(0, -'.md'.length))) return null;
  return guidePath(target.slice(0, -'.md'.length)) + (anchor === undefined ? '' : `#${anchor}`);
}

export interface Hit {
  title: string;
  /** The page that it is on. */
  page: string;
  href: string;
  text: string;
}

interface Entry extends Hit {
  words: string;
}

let entries: Entry[] | null = null;

function entryOf(page: string, path: string, { title, anchor, text }: Section): Entry {
  const words = `${title} ${text}`.toLowerCase();
  return { title, page, href: anchor ? `${path}#${anchor}` : path, text: text.trim(), words };
}

function allEntries(): Entry[] {
  // Error codes and routes have better pages than the lists of them in docs/.
  const listed = new Set(['errors', 'routes']);
  return [
    ...Object.entries(errorCatalogue).map(([code, { status, means, remedy }]) =>
      entryOf('Errors', '/docs/errors', { title: code, anchor: code, text: `${status} ${means} ${remedy}` }),
    ),
    ...routes.map(({ name, method, path, summary }) =>
      entryOf('Reference', '/docs/reference', {
        title: `${method} /v1${path}`,
        anchor: name.replaceAll('.', '-'),
        text: `${summary} ${name}`,
      }),
    ),
    ...guideGroups
      .flatMap((group) => group.names)
      .filter((name) => !listed.has(name))
      .flatMap((name) => {
        const page = guide(name);
        return page === null ? [] : page.sections.map((section) => entryOf(page.title, guidePath(name), section));
      }),
  ];
}

export const mostHits = 40;

/** Everything that has all the words, best first: those with the words in their title before the others. */
export function search(query: string): Hit[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 10);
  if (words.length === 0) return [];
  entries ??= allEntries();
  const whole = words.join(' ');
  const rank = ({ title, words: text }: Entry): number => {
    const lower = title.toLowerCase();
    if (lower === whole) return 0;
    if (lower.replace(/^sluice /, '').startsWith(whole)) return 1;
    if (words.every((word) => lower.includes(word))) return 2;
    return words.every((word) => text.includes(word)) ? 3 : 4;
  };
  return entries
    .map((entry) => ({ entry, order: rank(entry) }))
    .filter(({ order }) => order < 4)
    .sort((a, b) => a.order - b.order)
    .slice(0, mostHits)
    .map(({ entry: { words: _, ...hit } }) => hit);
}

/** The part of a text around the first of the words, with all of them marked. */
export function excerpt(text: string, query: string, length = 180): string {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 10);
  const lower = text.toLowerCase();
  const first = Math.min(...words.map((word) => lower.indexOf(word)).filter((index) => index >= 0), text.length);
  const from = first === text.length ? 0 : Math.max(0, first - length / 3);
  const cut = `${from > 0 ? '… ' : ''}${text.slice(from, from + length)}${from + length < text.length ? ' …' : ''}`;
  const marks = words.map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  if (marks.length === 0) return escapeHtml(cut);
  return cut
    .split(new RegExp(`(${marks.join('|')})`, 'i'))
    .map((part, index) => (index % 2 === 1 ? `<mark>${escapeHtml(part)}</mark>` : escapeHtml(part)))
    .join('');
}

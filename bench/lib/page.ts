// docs/benchmarks.md: the results of one run as tables, and the notes below them, which people write and a run keeps.
import type { Result } from './report.ts';

export interface Run {
  /** In Markdown. */
  commit: string;
  /** Such as 2026-11-18. */
  day: string;
  /** In words, without a name: cores, memory, kernel, Node.js. */
  machine: string;
  command: string;
  benchmarks: { name: string; results: Result[] }[];
}

const notesBegin = '<!-- Notes. A run rewrites everything above this line and keeps everything below it. -->';

const titles: Record<string, string> = {
  api: 'API',
  start: 'Start and memory',
  router: 'Router',
  rollout: 'Rollouts',
  webhooks: 'Webhooks',
  domains: 'Domains',
  alerts: 'Alerts',
  logs: 'Logs',
  catalogue: 'Catalogue',
};

/** What `npm run bench -- --write` runs. The others have pages of their own: docs/kubernetes.md and docs/scale.md. */
export const benchmarksOfPage = Object.keys(titles);

export function benchmarksPage({ commit, day, machine, command, benchmarks }: Run, notes: string): string {
  const judged = benchmarks.flatMap(({ results }) => results).filter(({ met }) => met !== null);
  const missed = judged.filter(({ met }) => met === false).length;
  const head = [
    '# Benchmarks',
    `One run of \`${command}\` at commit ${commit} on ${day}. Machine: ${machine}.`,
    'Most values are ratios of two programs measured in turns, because absolute times say more about the machine than about ' +
      'Sluice. "A / B" is A divided by B.',
    `Sluice misses ${missed} of ${judged.length} targets. The [notes](#notes) say why.`,
  ];
  const sections = benchmarks.map(({ name, results }) => `## ${titles[name] ?? name}\n\n${table(results)}`);
  return `${[...head, ...sections].join('\n\n')}\n\n${notesBegin}\n\n${notes.trim()}\n`;
}

function table(results: Result[]): string {
  const cell = (text: string) => text.trim().replaceAll('|', '\\|');
  const row = ({ what, measured, target, met }: Result) =>
    [what, measured, target ?? '', met === null ? '' : met ? 'met' : '**missed**'].map(cell);
  const rows = [['what', 'measured', 'target', ''], ['---', '---', '---', '---'], ...results.map(row)];
  return rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** What people wrote below the tables of the page as it is. */
export function notesOf(page: string): string {
  return page.split(notesBegin)[1]?.trim() ?? '## Notes';
}

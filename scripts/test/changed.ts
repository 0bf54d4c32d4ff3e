// npm test -- --changed [ref]: the test files whose imports reach a file that differs from the ref (default: HEAD).
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { entries } from '../../src/lib/install.ts';

const sources = ['src', 'test', 'scripts', 'bin', 'simulation', 'attack', 'bench', 'console'];

/** What is not imported, and the tests that read it. */
const readBy: [RegExp, RegExp][] = [
  [/^(docs\/|README|ARCHITECTURE|CONTRIBUTING|SECURITY)/, /^test\/(docs|architecture)\//],
  [/^console\//, /^test\/console\//],
  [/^deploy\//, /^test\/deploy\//],
  [/^src\/cli\/overview/, /^test\/cli\//],
  [/^src\/catalogue\/gallery\//, /^test\/catalogue\/gallery/],
  [/^(package|test\/tools\/|tsconfig|\.ci\/)/, /./],
];

interface Imports {
  /** Files of the tree. */
  files: string[];
  /** Whether it uses Node.js or a package, not counting types. */
  doesIo: boolean;
}

/** Every relative path that it names, imported or not: entries of processes are strings. */
function importsOf(file: string): Imports {
  const text = readFileSync(file, 'utf8');
  const values = text.replace(/^import type\b[^;]*;/gm, '');
  const relative = [...text.matchAll(/['"`](\.{1,2}\/[^'"`\n$]+)['"`]/g)].map(([, path]) => path!);
  const files = relative.map((path) => normalize(join(dirname(file), path))).filter((path) => existsSync(path));
  const doesIo = /^(?:import|export)\b[^;'"]*from '[^.][^']*'/m.test(values);
  return { files, doesIo };
}

function readGraph(): Map<string, Imports> {
  const files = sources.flatMap((root) => globSync(`${root}/**/*.{ts,tsx,js}`, { exclude: ['**/node_modules/**'] }));
  const graph = new Map(files.map((file) => [file, importsOf(file)]));
  graph.get('bin/bundle.js')?.files.push(...Object.values(entries));
  return graph;
}

function reach(graph: Map<string, Imports>, start: string, stopAt: ReadonlySet<string> = new Set()): Set<string> {
  const reached = new Set([start]);
  for (const file of reached) {
    if (stopAt.has(file)) continue;
    for (const next of graph.get(file)?.files ?? []) reached.add(next);
  }
  return reached;
}

/** Where the whole service is reached from: what starts it, in this process or in one of its own. */
const wholeService = new Set(['src/app.ts', 'bin/bundle.js', ...Object.values(entries)]);

/**
 * A pure rule is covered by the tests that import it themselves; what does I/O also by those that reach it through the
 * whole service.
 */
export function testsReaching(changed: string[], tests: string[]): string[] {
  const graph = readGraph();
  const isPure = (file: string) => [...reach(graph, file)].every((each) => !graph.get(each)?.doesIo);
  const pure = changed.filter((file) => graph.has(file) && file.startsWith('src/') && isPure(file));
  const others = changed.filter((file) => !pure.includes(file));
  return tests.filter((test) => {
    const direct = reach(graph, test, wholeService);
    if (pure.some((file) => direct.has(file))) return true;
    const all = reach(graph, test);
    return others.some((file) => all.has(file) || readBy.some(([what, by]) => what.test(file) && by.test(test)));
  });
}

export function changedSince(ref: string): string[] {
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).split('\n').filter(Boolean);
  return [...git('diff', '--name-only', ref), ...git('ls-files', '--others', '--exclude-standard')];
}

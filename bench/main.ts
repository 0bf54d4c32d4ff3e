// npm run bench -- api router … [part …]: each prints ratios measured side by side in one run. Several benchmarks run one
// after another, each in a process of its own; the words after their names choose parts of a benchmark.
// npm run bench -- --write: runs those of docs/benchmarks.md and writes the page.
import { execFileSync, spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, release, tmpdir, totalmem, type } from 'node:os';
import { basename, join } from 'node:path';
import { benchmarksOfPage, benchmarksPage, notesOf } from './lib/page.ts';
import { type Result, readResults } from './lib/report.ts';

const names = globSync('*.ts', { cwd: import.meta.dirname })
  .map((file) => basename(file, '.ts'))
  .filter((name) => name !== 'main')
  .sort();
const words = process.argv.slice(2);
const chosen = words.filter((word) => names.includes(word));
const parts = words.filter((word) => !names.includes(word));
if (words.join(' ') === '--write') writePage();
else if (chosen.length === 0 || words.includes('--write')) {
  console.error(`usage: npm run bench -- ${names.join(' | ')}, or alone: --write`);
  process.exit(2);
} else if (chosen.length === 1) await import(`./${chosen[0]}.ts`);
else {
  for (const name of chosen) if (!runBenchmark(name)) process.exitCode = 1;
}

function runBenchmark(name: string, resultsFile?: string): boolean {
  console.log(`— ${name}`);
  const env = { ...process.env, ...(resultsFile !== undefined && { BENCH_RESULTS: resultsFile }) };
  const { status } = spawnSync(process.execPath, [import.meta.filename, name, ...parts], { stdio: 'inherit', env });
  return status === 0;
}

/** All or nothing: a page is what one run measured. */
function writePage(): void {
  const page = join(import.meta.dirname, '../docs/benchmarks.md');
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
  parts.length = 0;
  const benchmarks: { name: string; results: Result[] }[] = [];
  try {
    for (const name of benchmarksOfPage) {
      const file = join(folder, name);
      writeFileSync(file, '');
      if (!runBenchmark(name, file)) throw new Error(`${name} failed: docs/benchmarks.md stays as it is`);
      benchmarks.push({ name, results: readResults(file) });
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim();
  const changed = git('status', '--porcelain', '--untracked-files=no') === '' ? '' : ' with uncommitted changes';
  const run = {
    commit: `\`${git('rev-parse', '--short', 'HEAD')}\`${changed}`,
    day: new Date().toISOString().slice(0, 10),
    machine: describeMachine(),
    command: 'npm run bench -- --write',
    benchmarks,
  };
  writeFileSync(page, benchmarksPage(run, notesOf(readFileSync(page, 'utf8'))));
}

/** What a reader has to know to compare, and not which machine it was. */
function describeMachine(): string {
  const memory = `${Math.round(totalmem() / 1024 ** 3)} GiB of memory`;
  const kernel = `${type()} ${release().split('.')[0]}`;
  return `${availableParallelism()} cores, ${memory}, ${kernel}, Node.js ${process.versions.node}`;
}

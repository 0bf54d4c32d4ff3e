// npm test [-- file or folder …] [-- --changed [ref]]: format, lint and types; then every test on SQLite and with the
// built-in router; those of test/both-databases/ on PostgreSQL too, and those of test/both-planes/ with HAProxy too.
// With CI=true a skipped test is a failure. docs/testing.md says what runs where, and what happens to a flaky test.
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, globSync, mkdtempSync, rmSync, statfsSync, statSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTemplate, preparePostgres, startPostgres } from '../test/helpers/postgres.ts';
import { createSqliteTemplate } from '../test/helpers/sqlite.ts';
import { bundleModules } from './bundle-service.ts';
import { installMissing, onPath, testPrograms } from './packages.ts';
import { changedSince, testsReaching } from './test/changed.ts';
import { TestMemory } from './test/memory.ts';
import { type Job, nextJob, type Pass, planJobs } from './test/plan.ts';
import { type Failure, type FileResult, runJob } from './test/run-job.ts';
import { installTestTools } from './test-tools.ts';

const strict = process.env.CI === 'true';
/** More files than these that pass only when they run again make the run red. */
const mostFlaky = 2;

/** Files in memory need no disk to be safe on: a database that syncs every commit is several times as fast there. */
const memoryDisk = '/dev/shm';
const tmpfsMagic = 0x01021994;
const enoughBytes = 4 * 1024 ** 3;

/** Where tests put their files; what removes it. */
function takeMemoryDisk(): () => void {
  if (!existsSync(memoryDisk)) return () => {};
  const { type, bavail, bsize } = statfsSync(memoryDisk);
  if (type !== tmpfsMagic || bavail * bsize < enoughBytes) return () => {};
  process.env.SLUICE_TEST_DISK = tmpdir();
  const folder = mkdtempSync(join(memoryDisk, 'sluice-tests-'));
  chmodSync(folder, 0o1777); // PostgreSQL does not run as root
  process.env.TMPDIR = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}

interface Choice {
  files: string[];
  /** Whether these are all there are. */
  isAll: boolean;
}

function testFiles(roots: string[]): string[] {
  return roots.flatMap((root) =>
    statSync(root).isDirectory()
      ? globSync(`${root}/**/*.test.ts`, { exclude: ['**/node_modules/**'] }).sort()
      : [root],
  );
}

function choose(words: string[]): Choice {
  if (words[0] === '--changed') {
    const files = testsReaching(changedSince(words[1] ?? 'HEAD'), testFiles(['src', 'test']));
    return { files, isAll: false };
  }
  return words.length > 0
    ? { files: testFiles(words), isAll: false }
    : { files: testFiles(['src', 'test']), isAll: true };
}

/** Resolves with whether it succeeded. */
function check(program: string, args: string[]): Promise<boolean> {
  return new Promise((resolve) => {
    spawn(program, args, { stdio: 'inherit' })
      .on('error', () => resolve(false))
      .on('exit', (code) => resolve(code === 0));
  });
}

const seconds = (value: number): string => `${value.toFixed(1).padStart(6)} s`;

function report(pass: Pass, { file, seconds: took, processorSeconds, passed, skipped, failures }: FileResult): void {
  const counts = `${passed.length} passed${skipped.length > 0 ? `, ${skipped.length} skipped` : ''}`;
  const where = pass === 'sqlite' ? file : `${file} (${pass})`;
  console.log(`${failures.length > 0 ? '✖' : '✔'} ${seconds(took)} ${seconds(processorSeconds)}  ${where}: ${counts}`);
  for (const failure of failures) printFailure(failure);
}

function printFailure({ file, test, message }: Failure): void {
  console.log(`✖ ${file}: ${test}\n  ${message.replaceAll('\n', '\n  ')}`);
}

/** Starts the longest first, so that no processor is left without work at the end. */
async function runAll(
  jobs: Job[],
  envOf: Record<Pass, Record<string, string>>,
  memory: TestMemory,
  next: (queue: readonly Job[], running: readonly Job[]) => Job | undefined,
) {
  const results: { pass: Pass; result: FileResult }[] = [];
  const queue = [...jobs];
  const running = new Map<Job, Promise<void>>();
  const carryOut = async (job: Job) => {
    for (const result of await runJob(job, envOf[job.pass])) {
      report(job.pass, result);
      results.push({ pass: job.pass, result });
      memory.noteCost(job.pass, result.file, result);
    }
    running.delete(job);
  };
  while (queue.length > 0 || running.size > 0) {
    const job = next(queue, [...running.keys()]);
    if (job) {
      queue.splice(queue.indexOf(job), 1);
      running.set(job, carryOut(job));
    } else await Promise.race(running.values());
  }
  return results;
}

async function main(): Promise<number> {
  const startedMs = performance.now();
  const { files, isAll } = choose(process.argv.slice(2));
  installMissing(testPrograms);
  installTestTools();
  // Most of what a short file does is loading the service.
  process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), 'node-compile-cache');
  const removeFiles = takeMemoryDisk();
  if (!(await check(process.execPath, ['scripts/build.ts', 'service']))) return 1;
  const checks = isAll
    ? Promise.all([check('biome', ['check', '.']), check('tsc', ['--noEmit', '--checkers', '1'])])
    : [];
  // A single file is loaded sooner from its sources.
  if (isAll) process.env.SLUICE_TEST_MODULES = await bundleModules();
  const memory = new TestMemory();
  const missing = onPath('haproxy') ? null : 'haproxy is not installed';
  const jobs = planJobs(files, memory.costOf).filter(({ pass }) => pass !== 'haproxy' || !missing);
  const postgresHome = preparePostgres();
  process.env.SLUICE_TEST_POSTGRES_HOME = postgresHome;
  const postgres = await startPostgres({ isDurable: false });
  try {
    const common = {
      ...{ SLUICE_TEST_POSTGRES: '', SLUICE_TEST_DATA_PLANE: '' },
      SLUICE_TEST_SQLITE_TEMPLATE: await createSqliteTemplate(mkdtempSync(join(tmpdir(), 'sluice-template-'))),
    };
    const envOf: Record<Pass, Record<string, string>> = {
      sqlite: common,
      postgres: {
        ...common,
        SLUICE_TEST_POSTGRES: postgres.url,
        SLUICE_TEST_POSTGRES_TEMPLATE: await createTemplate(postgres.url),
      },
      haproxy: { ...common, SLUICE_TEST_DATA_PLANE: 'haproxy' },
    };
    const processors = availableParallelism();
    const results = await runAll(jobs, envOf, memory, (queue, running) => nextJob(queue, running, processors));
    const failed = results.filter(({ result }) => result.failures.length > 0);
    const again = failed.length <= 2 * mostFlaky ? failed : [];
    if (again.length > 0) console.log(`\nonce more, alone: ${again.map(({ result }) => result.file).join(', ')}`);
    const retried = await runAll(
      again.map(({ pass, result }) => ({ pass, files: [result.file], estimateS: 0, demand: 1 })),
      envOf,
      memory,
      (queue, running) => (running.length === 0 ? queue[0] : undefined),
    );
    return summarize({ results, retried, checked: (await checks).every(Boolean), missing, memory, startedMs });
  } finally {
    await postgres.stop();
    rmSync(postgresHome, { recursive: true, force: true });
    removeFiles();
  }
}

interface Outcome {
  results: { pass: Pass; result: FileResult }[];
  retried: { pass: Pass; result: FileResult }[];
  checked: boolean;
  missing: string | null;
  memory: TestMemory;
  startedMs: number;
}

function summarize({ results, retried, checked, missing, memory, startedMs }: Outcome): number {
  const isSame = (a: { pass: Pass; result: FileResult }) => (b: { pass: Pass; result: FileResult }) =>
    a.pass === b.pass && a.result.file === b.result.file;
  const recovered = retried.filter(({ result }) => result.failures.length === 0);
  const final = results.map((each) => recovered.find(isSame(each)) ?? each);
  const passed = final.flatMap(({ result }) => result.passed.map((test) => `${result.file}: ${test}`));
  for (const test of passed) memory.notePassed(test);
  const flaky = results
    .filter((each) => recovered.some(isSame(each)))
    .flatMap(({ result }) => result.failures.map(({ file, test }) => `${file}: ${test}`));
  const earlier = memory.flaky();
  for (const test of flaky) memory.noteFlaky(test);
  memory.save();

  const failures = final.flatMap(({ result }) => result.failures);
  const skipped = final.reduce((sum, { result }) => sum + result.skipped.length, missing ? 1 : 0);
  let failed = failures.length + (checked ? 0 : 1);
  if (missing) console.log(`\nskipped with HAProxy: ${missing}`);
  if (strict) failed += skipped;
  const slowest = final.toSorted((a, b) => b.result.seconds - a.result.seconds).slice(0, 10);
  console.log('\nslowest:');
  for (const { pass, result } of slowest) console.log(`${seconds(result.seconds)}  ${result.file} (${pass})`);
  if (failures.length > 0) console.log('\nfailed:');
  for (const failure of failures) printFailure(failure);
  if (!checked) console.log('✖ format, lint or types: see above');
  for (const [test, passes] of earlier) console.log(`flaky before, passed ${passes} times since: ${test}`);
  for (const test of flaky) console.log(`flaky: ${test}`);
  if (recovered.length > mostFlaky) {
    console.log(`✖ ${recovered.length} files passed only when they ran again`);
    failed += recovered.length;
  }
  const minutes = (performance.now() - startedMs) / 60_000;
  console.log(`\n${final.length} files in ${minutes.toFixed(1)} minutes`);
  console.log(`${passed.length} passed, ${failed} failed, ${skipped} skipped`);
  return failed === 0 && (passed.length > 0 || final.length === 0) ? 0 : 1;
}

process.exit(await main());

// npm test [-- file or folder …]: format, lint and types; then every test on SQLite and with the built-in router; those of
// test/both-databases/ on PostgreSQL too, and those of test/both-planes/ with HAProxy too.
// With CI=true a skipped test is a failure. So is, always, a file that does not end by itself after its last test.
import { spawnSync } from 'node:child_process';
import { globSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { startPostgres } from '../test/helpers/postgres.ts';
import { installMissing, onPath, testPrograms } from './packages.ts';
import { installTestTools } from './test-tools.ts';

const strict = process.env.CI === 'true';
const chosen = process.argv.slice(2);

function testFiles(roots: string[]): string[] {
  return roots.flatMap((root) =>
    statSync(root).isDirectory()
      ? globSync(`${root}/**/*.test.ts`, { exclude: ['**/node_modules/**'] }).sort()
      : [root],
  );
}

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** What failed, told again as the last thing of a run whose output is thousands of lines long. */
const failures: string[] = [];

const preload = import.meta.resolve('../test/helpers/ends-by-itself.ts');

/** A file sends its summary as the last thing when it ends in order: without one, some of its tests may not be counted. */
function reportUnfinished(files: string[], summed: Set<string>, failed: Set<string>): number {
  const unfinished = files.map((file) => resolve(file)).filter((file) => !summed.has(file) && !failed.has(file));
  for (const file of unfinished) console.log(`✖ ${file} ended before it had reported all its tests`);
  return unfinished.length;
}

/** With those of its causes: fast-check reports what it tried, and what went wrong as the cause of that. */
function messagesOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}\n  ${messagesOf(error.cause)}`;
}

async function runTests(label: string, files: string[], env: Record<string, string>): Promise<Counts> {
  console.log(`\n— ${label}: ${files.length} files`);
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const summed = new Set<string>();
  const failed = new Set<string>();
  const slowest: { file: string; seconds: number }[] = [];
  // Most of what a short file does is loading the service.
  Object.assign(process.env, env, { NODE_COMPILE_CACHE: join(tmpdir(), 'node-compile-cache') });
  const stream = run({ files, concurrency: 3, timeout: 600_000, execArgv: ['--import', preload] });
  stream.on('test:pass', (event) => {
    if (event.details.type === 'suite') return;
    if (event.skip !== undefined || event.todo !== undefined) counts.skipped++;
    else counts.passed++;
  });
  stream.on('test:fail', (event) => {
    if (event.file) failed.add(event.file);
    const { cause, failureType } = event.details.error as Error & { failureType?: string };
    // A suite fails with its tests; it is counted only where it fails by itself, in a hook.
    if (event.details.type === 'suite' && failureType === 'subtestsFailed') return;
    counts.failed++;
    const where = event.file ? relative('.', event.file) : label;
    failures.push(`✖ ${label}, ${where}: ${event.name}\n  ${messagesOf(cause)}`);
  });
  stream.on('test:summary', (event) => {
    if (!event.file) return;
    summed.add(event.file);
    slowest.push({ file: relative('.', event.file), seconds: event.duration_ms / 1000 });
  });
  for await (const text of stream.compose(spec)) process.stdout.write(text);
  counts.failed += reportUnfinished(files, summed, failed);
  slowest.sort((a, b) => b.seconds - a.seconds);
  for (const { file, seconds } of slowest.slice(0, 10)) console.log(`${seconds.toFixed(0).padStart(5)} s  ${file}`);
  return counts;
}

function check(program: string, args: string[]): boolean {
  return spawnSync(program, args, { stdio: 'inherit' }).status === 0;
}

installMissing(testPrograms);
installTestTools();
const checked = chosen.length > 0 || (check('biome', ['check', '.']) && check('tsc', ['--noEmit']));
const total: Counts = { passed: 0, failed: checked ? 0 : 1, skipped: 0 };

const everything = testFiles(chosen.length > 0 ? chosen : ['src', 'test']);
const onBoth = everything.filter((file) => file.startsWith('test/both-databases/'));
const onBothPlanes = everything.filter((file) => file.startsWith('test/both-planes/'));

async function runWithHaproxy(files: string[]): Promise<Counts | false> {
  if (files.length === 0) return false;
  if (onPath('haproxy')) return runTests('HAProxy', files, { SLUICE_TEST_DATA_PLANE: 'haproxy' });
  console.log(`\n— HAProxy: ${files.length} files skipped, because haproxy is missing`);
  return { passed: 0, failed: 0, skipped: files.length };
}

const postgres = await startPostgres();
try {
  for (const counts of [
    await runTests('SQLite', everything, { SLUICE_TEST_POSTGRES: '', SLUICE_TEST_DATA_PLANE: '' }),
    onBoth.length > 0 && (await runTests('PostgreSQL', onBoth, { SLUICE_TEST_POSTGRES: postgres.url })),
    await runWithHaproxy(onBothPlanes),
  ]) {
    if (!counts) continue;
    total.passed += counts.passed;
    total.failed += counts.failed;
    total.skipped += counts.skipped;
  }
} finally {
  await postgres.stop();
}

if (strict && total.skipped > 0) total.failed += total.skipped;
if (failures.length > 0) console.log(`\n${failures.join('\n')}`);
console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exit(total.failed === 0 && total.passed > 0 ? 0 : 1);

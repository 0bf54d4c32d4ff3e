// npm test [-- file or folder …]: format, lint and types; then every test on SQLite, and those of test/both-databases/ on PostgreSQL too.
// With CI=true a skipped test is a failure.
import { spawnSync } from 'node:child_process';
import { globSync, statSync } from 'node:fs';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { startPostgres } from '../test/helpers/postgres.ts';
import { installOpenApiTools } from './openapi-tools.ts';
import { installMissing, testPrograms } from './packages.ts';

const strict = process.env.CI === 'true';
const chosen = process.argv.slice(2);

function testFiles(roots: string[]): string[] {
  return roots.flatMap((root) =>
    statSync(root).isDirectory()
      ? globSync(`${root}/**/*.test.ts`, { exclude: ['**/node_modules/**'] }).sort()
      : [root],
  );
}

async function runTests(label: string, files: string[], env: Record<string, string>) {
  console.log(`\n— ${label}: ${files.length} files`);
  const counts = { passed: 0, failed: 0, skipped: 0 };
  Object.assign(process.env, env);
  const stream = run({ files, concurrency: 2, timeout: 600_000, forceExit: true });
  stream.on('test:pass', (event) => {
    if (event.details.type === 'suite') return;
    if (event.skip !== undefined || event.todo !== undefined) counts.skipped++;
    else counts.passed++;
  });
  stream.on('test:fail', () => {
    counts.failed++;
  });
  const ended = new Promise((resolve) => stream.once('end', resolve));
  stream.compose(spec).pipe(process.stdout, { end: false });
  await ended;
  return counts;
}

function check(program: string, args: string[]): boolean {
  return spawnSync(program, args, { stdio: 'inherit' }).status === 0;
}

installMissing(testPrograms);
installOpenApiTools();
const checked = chosen.length > 0 || (check('biome', ['check', '.']) && check('tsc', ['--noEmit']));
const total = { passed: 0, failed: checked ? 0 : 1, skipped: 0 };

const everything = testFiles(chosen.length > 0 ? chosen : ['src', 'test']);
const onBoth = everything.filter((file) => file.startsWith('test/both-databases/'));
const postgres = await startPostgres();
try {
  for (const counts of [
    await runTests('SQLite', everything, { SLUICE_TEST_POSTGRES: '' }),
    onBoth.length > 0 && (await runTests('PostgreSQL', onBoth, { SLUICE_TEST_POSTGRES: postgres.url })),
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
console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exit(total.failed === 0 && total.passed > 0 ? 0 : 1);

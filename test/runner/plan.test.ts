// Which test files share a process, and which process starts next.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CostOf, type Job, nextJob, planJobs } from '../../scripts/test/plan.ts';

const none: CostOf = () => undefined;

test('a file of both databases runs on each, and one of both planes on each', () => {
  const jobs = planJobs(['test/both-databases/a/a.test.ts', 'test/both-planes/b.test.ts', 'test/cli/c.test.ts'], none);
  const passes = jobs.flatMap(({ pass, files }) => files.map((file) => `${pass} ${file}`));
  assert.deepEqual(passes.sort(), [
    'haproxy test/both-planes/b.test.ts',
    'postgres test/both-databases/a/a.test.ts',
    'sqlite test/both-databases/a/a.test.ts',
    'sqlite test/both-planes/b.test.ts',
    'sqlite test/cli/c.test.ts',
  ]);
});

test('short files of a folder share a process, a long one has its own, and the longest comes first', () => {
  const seconds: Record<string, number> = {
    'test/cli/long.test.ts': 90,
    'test/cli/a.test.ts': 3,
    'test/cli/b.test.ts': 4,
  };
  const jobs = planJobs(Object.keys(seconds), (_, file) => ({
    seconds: seconds[file]!,
    processorSeconds: seconds[file]! / 2,
  }));
  assert.deepEqual(
    jobs.map(({ files }) => files),
    [['test/cli/long.test.ts'], ['test/cli/a.test.ts', 'test/cli/b.test.ts']],
  );
});

test('what computes waits for a processor, what waits starts beside it', () => {
  const job = (name: string, demand: number): Job => ({ pass: 'sqlite', files: [name], estimateS: 10, demand });
  const [encode, page, wait] = [job('encode', 1.6), job('page', 1.2), job('wait', 0.2)];
  assert.equal(nextJob([encode, page, wait], [], 2), encode);
  assert.equal(nextJob([page, wait], [encode], 2), wait);
  assert.equal(nextJob([page], [encode, wait], 2), undefined);
  assert.equal(nextJob([page], [wait], 2), page);
  assert.equal(
    nextJob(
      [wait],
      Array.from({ length: 5 }, () => job('idle', 0)),
      2,
    ),
    undefined,
  );
  assert.equal(nextJob([encode], [], 1), encode, 'one runs, however much it computes');
});

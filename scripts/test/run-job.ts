// One test process: its files, what they reported, and how they ended.
import { join } from 'node:path';
import { run } from 'node:test';
import type { Job } from './plan.ts';

export interface Failure {
  file: string;
  test: string;
  message: string;
}

export interface FileResult {
  file: string;
  seconds: number;
  /** Of the test process and of the children that it has waited for. */
  processorSeconds: number;
  /** Names of the tests. */
  passed: string[];
  skipped: string[];
  failures: Failure[];
}

const helpers = join(import.meta.dirname, '../../test/helpers');
const timeoutMs = 600_000;

export async function runJob({ files }: Pick<Job, 'files'>, env: Record<string, string>): Promise<FileResult[]> {
  const results = new Map(
    files.map((file) => [
      file,
      { file, seconds: 0, processorSeconds: 0, passed: [], skipped: [], failures: [] } as FileResult,
    ]),
  );
  const ended = new Set<string>();
  const stream = run({
    files: [join(helpers, 'test-process.ts')],
    argv: [JSON.stringify({ files, env })],
    // A larger nursery: most of what a test allocates is garbage a moment later.
    execArgv: [
      ...['bundled-modules.ts', 'ends-by-itself.ts'].flatMap((preload) => ['--import', join(helpers, preload)]),
      '--max-semi-space-size=64',
    ],
    concurrency: 1,
    timeout: timeoutMs,
  });
  let printed = '';
  let current = files[0]!;
  const orphans: Failure[] = [];
  for await (const { type, data } of stream) {
    if (type === 'test:stderr' || type === 'test:stdout') {
      printed += data.message;
      const [, file, took] = /^processor time of (\S+): ([\d.]+)$/m.exec(data.message) ?? [];
      const counted = results.get(file ?? '');
      if (counted) counted.processorSeconds = Number(took);
    }
    // Its suites are named by their files.
    if (type === 'test:start' && data.nesting === 0 && results.has(data.name)) current = data.name;
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const isFile = data.nesting === 0 && results.has(data.name);
    const result = results.get(isFile ? data.name : current)!;
    if (isFile) {
      ended.add(data.name);
      result.seconds = data.details.duration_ms / 1000;
    }
    if (type === 'test:pass') {
      if (data.details.type === 'suite') continue;
      if (data.skip !== undefined || data.todo !== undefined) result.skipped.push(data.name);
      else result.passed.push(data.name);
      continue;
    }
    const { cause, failureType } = data.details.error as Error & { failureType?: string };
    // A suite, and the process as a whole, fail with their tests; they count only where they fail by themselves.
    if (failureType === 'subtestsFailed') continue;
    const failure = { file: result.file, test: data.name, message: messagesOf(cause) };
    if (data.nesting === 0 && !isFile) orphans.push(failure);
    else result.failures.push(failure);
  }
  for (const result of results.values()) {
    if (ended.has(result.file)) continue;
    const message = [...orphans.map(({ message }) => message), lastLines(printed)].join('\n');
    result.failures.push({ file: result.file, test: 'the whole file', message: `did not run to its end\n${message}` });
  }
  // The process failed though each of its files passed: it did not end by itself, say.
  const last = results.get(files.at(-1)!)!;
  if (orphans.length > 0 && ended.size === files.length && [...results.values()].every((r) => r.failures.length === 0))
    last.failures.push({ ...orphans[0]!, file: last.file, message: `${orphans[0]!.message}\n${lastLines(printed)}` });
  return [...results.values()];
}

const lastLines = (text: string): string => text.split('\n').slice(-40).join('\n');

/** With those of its causes: fast-check reports what it tried, and what went wrong as the cause of that. */
function messagesOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const own = error.stack?.includes(error.message) ? error.stack : error.message;
  const short = own
    .split('\n')
    .filter((line) => !/^\s+at .*node:internal/.test(line))
    .join('\n');
  return error.cause === undefined ? short : `${short}\n  ${messagesOf(error.cause)}`;
}

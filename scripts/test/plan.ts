// Which test files run together in one process, and in which order the processes start. Pure.

/** `sqlite` also means with the built-in router: the defaults. */
export type Pass = 'sqlite' | 'postgres' | 'haproxy';

export interface Job {
  pass: Pass;
  files: string[];
  estimateS: number;
}

export type DurationOf = (pass: Pass, file: string) => number | undefined;

/** Long enough to make loading the service a small part, short enough to leave no core without work at the end. */
const jobS = 40;
const mostFiles = 40;

/** Where nothing is remembered. Those that start containers, browsers or several services come first. */
const guessesS: [RegExp, number][] = [
  [/^test\/(engines|console|catalogue|supervisor|traffic)\//, 25],
  [/^test\/(docs|deploy|postgres|attack|simulation)\//, 15],
  [/^test\/(cli|both-planes|both-databases\/(alerts|deployments|domains|webhooks))\//, 8],
  [/^test\//, 4],
];
const guess = (file: string): number => guessesS.find(([pattern]) => pattern.test(file))?.[1] ?? 0.3;

export const passesOf = (file: string): Pass[] => {
  if (file.startsWith('test/both-databases/')) return ['sqlite', 'postgres'];
  if (file.startsWith('test/both-planes/')) return ['sqlite', 'haproxy'];
  return ['sqlite'];
};

/** Files of one process load much the same: those of one folder, and everything that is pure. */
const kindOf = (file: string): string => (file.startsWith('src/') ? 'src' : file.split('/').slice(0, 3).join('/'));

export function planJobs(files: string[], durationOf: DurationOf): Job[] {
  const jobs: Job[] = [];
  const open = new Map<string, Job>();
  for (const file of files) {
    for (const pass of passesOf(file)) {
      const estimateS = durationOf(pass, file) ?? guess(file);
      const kind = `${pass} ${kindOf(file)}`;
      const job = open.get(kind);
      if (job && job.estimateS + estimateS <= jobS && job.files.length < mostFiles) {
        job.files.push(file);
        job.estimateS += estimateS;
      } else {
        const next = { pass, files: [file], estimateS };
        jobs.push(next);
        // A long file alone closes no group that shorter ones can still join.
        if (!job || estimateS < jobS / 2) open.set(kind, next);
      }
    }
  }
  return jobs.sort((a, b) => b.estimateS - a.estimateS);
}

// Which test files run together in one process, and in which order the processes start. Pure.
import { dirname } from 'node:path';

/** `sqlite` also means with the built-in router: the defaults. */
export type Pass = 'sqlite' | 'postgres' | 'haproxy';

export interface Job {
  pass: Pass;
  files: string[];
  estimateS: number;
  /** How many processors it keeps busy, on average. */
  demand: number;
}

/** What a file took the last time. */
export interface Cost {
  seconds: number;
  processorSeconds?: number;
}

export type CostOf = (pass: Pass, file: string) => Cost | undefined;

/** Long enough to make loading the service a small part, short enough to leave no core without work at the end. */
const jobS = 40;
const mostFiles = 40;

/** For hosts that are away, and for alerts that last. */
const mostlyWaiting = /^test\/(engines\/docker-hosts|both-databases\/alerts\/live)\./;

/** Where nothing is remembered. Those that start containers, browsers or several services come first. */
const guessesS: [RegExp, number][] = [
  [mostlyWaiting, 120],
  [/^test\/(engines\/engines|traffic\/haproxy|console\/walks|docs\/tour|supervisor\/own-faults)\./, 80],
  [/^test\/both-databases\/(deployments\/rollouts|domains\/acme)\./, 60],
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
const kindOf = (file: string): string => (file.startsWith('src/') ? 'src' : dirname(file));

/** Of the processor time, that which is not counted: PostgreSQL's, Docker's, and that of children that are killed. */
const uncounted: Record<Pass, number> = { sqlite: 1.2, postgres: 1.6, haproxy: 1.4 };
/** Where nothing is remembered. */
const usualDemand = 0.55;
/** A file that only waits still starts and ends. */
const leastDemand = 0.15;

function demandOf(pass: Pass, file: string, { seconds, processorSeconds }: Cost): number {
  if (processorSeconds === undefined) return mostlyWaiting.test(file) ? usualDemand / 2 : usualDemand;
  return Math.max(leastDemand, (uncounted[pass] * processorSeconds) / Math.max(seconds, 0.1));
}

export function planJobs(files: string[], costOf: CostOf): Job[] {
  const jobs: Job[] = [];
  const open = new Map<string, Job>();
  for (const file of files) {
    for (const pass of passesOf(file)) {
      const cost = costOf(pass, file) ?? { seconds: guess(file) };
      const estimateS = cost.seconds;
      const demand = demandOf(pass, file, cost);
      const kind = `${pass} ${kindOf(file)}`;
      const job = open.get(kind);
      if (job && job.estimateS + estimateS <= jobS && job.files.length < mostFiles) {
        const totalS = job.estimateS + estimateS;
        job.demand = totalS > 0 ? (job.demand * job.estimateS + demand * estimateS) / totalS : demand;
        job.files.push(file);
        job.estimateS = totalS;
      } else {
        const next = { pass, files: [file], estimateS, demand };
        jobs.push(next);
        // A long file alone closes no group that shorter ones can still join.
        if (!job || estimateS < jobS / 2) open.set(kind, next);
      }
    }
  }
  return jobs.sort((a, b) => b.estimateS - a.estimateS);
}

/** Tests wait as well as compute, so a little more is started than there are processors for. */
const overcommit = 1.3;
/** However little they seem to compute: what their services and browsers do is counted only in part. */
const mostPerProcessor = 2.5;

/** The next one to start beside those that run: the longest that leaves them their processor time. Undefined: none now. */
export function nextJob(queue: readonly Job[], running: readonly Job[], processors: number): Job | undefined {
  if (running.length === 0) return queue[0];
  if (running.length >= mostPerProcessor * processors) return undefined;
  const free = overcommit * processors - running.reduce((sum, { demand }) => sum + demand, 0);
  return queue.find(({ demand }) => demand <= free);
}

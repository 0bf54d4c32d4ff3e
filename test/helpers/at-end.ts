// What helpers have to clean up after the last test of a process. A hook that a helper registers when it is loaded would run
// after the first file that imports it, and not after the others of the same process (test-process.ts loads this first).
import { after } from 'node:test';

const steps: (() => unknown)[] = [];

after(async () => {
  for (const step of steps) await step();
});

export const atEnd = (step: () => unknown): void => void steps.push(step);

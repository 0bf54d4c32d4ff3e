// What test runs remember from one to the next, outside the repository: how long each file took, and which tests failed
// and then passed when they ran once more.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Cost, Pass } from './plan.ts';

interface Remembered {
  /** Seconds, by pass and file. */
  durations: Record<string, number>;
  /** Seconds of processor time, likewise. */
  processor: Record<string, number>;
  /** By `file: test`: how often it has passed since it was flaky. */
  flaky: Record<string, number>;
}

/** A flaky test is shown until it has passed this often. */
const passesToForget = 20;

const path = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'sluice', 'tests.json');
const keyOf = (pass: Pass, file: string): string => `${pass} ${file}`;

export class TestMemory {
  readonly #now: Remembered = read();

  costOf = (pass: Pass, file: string): Cost | undefined => {
    const seconds = this.#now.durations[keyOf(pass, file)];
    return seconds === undefined ? undefined : { seconds, processorSeconds: this.#now.processor[keyOf(pass, file)] };
  };

  noteCost(pass: Pass, file: string, { seconds, processorSeconds = 0 }: Cost): void {
    this.#now.durations[keyOf(pass, file)] = Math.round(seconds * 10) / 10;
    this.#now.processor[keyOf(pass, file)] = Math.round(processorSeconds * 10) / 10;
  }

  noteFlaky(test: string): void {
    this.#now.flaky[test] = 0;
  }

  notePassed(test: string): void {
    const passes = this.#now.flaky[test];
    if (passes === undefined) return;
    if (passes + 1 >= passesToForget) delete this.#now.flaky[test];
    else this.#now.flaky[test] = passes + 1;
  }

  /** Those of earlier runs that have not passed often enough since. */
  flaky(): [test: string, passes: number][] {
    return Object.entries(this.#now.flaky);
  }

  /** Two runs at once: the last one to end wins, and nothing is lost that matters. */
  save(): void {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(`${path}.${process.pid}`, JSON.stringify(this.#now, null, 1));
    renameSync(`${path}.${process.pid}`, path);
  }
}

function read(): Remembered {
  try {
    return { durations: {}, processor: {}, flaky: {}, ...JSON.parse(readFileSync(path, 'utf8')) };
  } catch {
    return { durations: {}, processor: {}, flaky: {} };
  }
}

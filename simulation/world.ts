// Virtual time, and the processes that live in it. Everything that happens is an entry of one queue, ordered by time: a
// timer that fires, an answer that arrives, a fault. A step takes the first entry, runs what it causes until all of
// that waits for something, and moves the time on. So a run depends on its seed alone, and an hour of waiting costs
// nothing.

import type { Clock } from '../src/lib/clock.ts';
import { Random } from './random.ts';

/** The event loop's own, which the globals hide during a run. */
const realSetImmediate = globalThis.setImmediate;

export interface Entry {
  at: number;
  order: number;
  /** The process that runs this; null: the world outside of all processes. */
  machine: Machine | null;
  label: string;
  /** Happens outside of the process when it is due, even if the process is paused or dead by then. */
  effect: (() => void) | null;
  run: () => void;
  canceled: boolean;
}

const startOfTime = 1_700_000_000_000;

export class World {
  readonly seed: number;
  readonly random: Random;
  now = startOfTime;
  steps = 0;
  /** The process whose code runs in this step. */
  current: Machine | null = null;
  /** A hash of everything that happened so far: two runs of a seed have the same. */
  trace = 0x811c9dc5;
  /** The latest entries, for the report of a broken invariant. */
  readonly recent: string[] = [];
  readonly #heap: Entry[] = [];
  #orders = 0;

  constructor(seed: number) {
    this.seed = seed;
    this.random = new Random(seed, 'world');
  }

  after(
    machine: Machine | null,
    ms: number,
    label: string,
    run: () => void,
    effect: (() => void) | null = null,
  ): Entry {
    const at = this.now + Math.max(0, ms);
    const entry = { at, order: this.#orders++, machine, label, effect, run, canceled: false };
    this.#push(entry);
    return entry;
  }

  /** Puts an entry back that its process could not take when it was due. */
  again(entry: Entry): void {
    entry.at = this.now;
    entry.order = this.#orders++;
    this.#push(entry);
  }

  note(text: string): void {
    this.recent.push(`${((this.now - startOfTime) / 1000).toFixed(4)} ${text}`);
    if (this.recent.length > 400) this.recent.splice(0, 200);
    for (let i = 0; i < text.length; i++) this.trace = Math.imul(this.trace ^ text.charCodeAt(i), 0x01000193);
  }

  /** Takes one step; false: nothing is left to happen. */
  async step(): Promise<boolean> {
    for (;;) {
      const entry = this.#pop();
      if (!entry) return false;
      const { machine, label, effect } = entry;
      if (entry.canceled || (machine?.isDead && !effect)) continue;
      if (entry.at > this.now) this.now = entry.at;
      if (!effect && machine?.isPaused) {
        machine.backlog.push(entry);
        continue;
      }
      this.steps++;
      this.note(`${machine?.name ?? '-'} ${label}`);
      entry.effect = null;
      effect?.();
      if (machine?.isPaused) machine.backlog.push(entry);
      else if (!machine?.isDead) {
        this.current = machine;
        entry.run();
        await settled();
        this.current = null;
      }
      return true;
    }
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(entry, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = entry;
  }

  #pop(): Entry | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (!first || !last || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

const isBefore = (a: Entry, b: Entry): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);

/** Every promise that could continue has continued: microtasks all run before the event loop's next turn. */
const settled = () => new Promise<void>((resolve) => realSetImmediate(resolve));

/**
 * One process of the simulated installation. It can crash at any step, be paused, and have a clock that is wrong. What it
 * waits for when it crashes never arrives, so none of its code runs again; a restart is another machine.
 */
export class Machine {
  readonly name: string;
  /** What Math.random and the random bytes of this process come from. */
  readonly random: Random;
  readonly clock: Clock;
  readonly startedAt: number;
  /** As the process calls itself where processes have to be told apart. */
  processId = '';
  isDead = false;
  isPaused = false;
  /** How far its clock is off. */
  clockOffsetMs: number;
  /** How far the deadlines that it writes are off. */
  deadlinesAheadMs = 0;
  /** What was due while it was paused. */
  readonly backlog: Entry[] = [];
  /** When a fault last touched it. */
  #disturbedAt: number;
  /** A router's last heartbeat, and since when no two of them were further apart than its lease. */
  beatAt = Number.NEGATIVE_INFINITY;
  liveSince = Number.NEGATIVE_INFINITY;
  readonly onCrash: (() => void)[] = [];
  readonly #world: World;

  /** `clockOffsetMs`: a restart does not put the clock right. */
  constructor(world: World, name: string, start: number, clockOffsetMs = 0) {
    this.#world = world;
    this.name = name;
    this.random = new Random(world.seed, `${name} ${start}`);
    this.clock = { now: () => Math.floor(world.now + this.clockOffsetMs), monotonic: () => world.now };
    this.clockOffsetMs = clockOffsetMs;
    this.startedAt = world.now;
    this.#disturbedAt = world.now;
  }

  setClock(offsetMs: number): void {
    if (this.clockOffsetMs === offsetMs) return;
    this.clockOffsetMs = offsetMs;
    this.disturb();
  }

  /** Since when no fault has touched it: what is promised of undisturbed processes is promised from then on. */
  get calmSince(): number {
    return this.isPaused ? this.#world.now : this.#disturbedAt;
  }

  disturb(): void {
    this.#disturbedAt = this.#world.now;
  }

  beat(leaseMs: number): void {
    const { now } = this.#world;
    if (now - this.beatAt >= leaseMs) this.liveSince = now;
    this.beatAt = now;
  }

  crash(): void {
    if (this.isDead) return;
    this.#world.note(`${this.name} crashes`);
    this.isDead = true;
    for (const then of this.onCrash) then();
  }

  pause(ms: number): void {
    if (this.isPaused || this.isDead) return;
    this.isPaused = true;
    this.disturb();
    this.#world.after(null, ms, `${this.name} continues`, () => {
      this.isPaused = false;
      this.disturb();
      for (const entry of this.backlog.splice(0)) this.#world.again(entry);
    });
  }
}

// One process of the simulated installation. It can crash at any step, be paused, and have a clock that is wrong. What it
// waits for when it crashes never arrives, so none of its code runs again; a restart is another machine.
import type { Clock } from '../src/lib/clock.ts';
import { Random } from './random.ts';
import type { Entry, World } from './world.ts';

export class Machine {
  readonly name: string;
  /** What Math.random and the random bytes of this process come from. */
  readonly random: Random;
  readonly clock: Clock;
  readonly startedAt: number;
  /** As the process calls itself where processes have to tell each other apart. */
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
  /** When a router last said that it is alive, and since when it has never been silent for longer than its lease. */
  beatAt = Number.NEGATIVE_INFINITY;
  liveSince = Number.NEGATIVE_INFINITY;
  readonly onCrash: (() => void)[] = [];
  readonly #world: World;

  /** `clockOffsetMs`: a restart does not put the clock right. */
  constructor(world: World, name: string, start: number, clockOffsetMs = 0) {
    this.#world = world;
    this.name = name;
    this.random = new Random(world.seed, `${name} ${start}`);
    this.clock = { now: () => Math.floor(world.now + this.clockOffsetMs), steady: () => world.now };
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

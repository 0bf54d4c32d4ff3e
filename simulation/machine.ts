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
  /** How far its clock is off, and since when. */
  clockOffsetMs = 0;
  clockSetAt: number;
  /** What was due while it was paused. */
  readonly backlog: Entry[] = [];
  /** When a fault last touched it. */
  #disturbedAt: number;
  /** When it last waited longer than it should have: it may still act on what it knew before. */
  heldUpAt: number;
  /** When a router last said that it is alive. */
  beatAt = Number.NEGATIVE_INFINITY;
  readonly onCrash: (() => void)[] = [];
  readonly #world: World;

  constructor(world: World, name: string, start: number) {
    this.#world = world;
    this.name = name;
    this.random = new Random(world.seed, `${name} ${start}`);
    this.clock = { now: () => Math.floor(world.now + this.clockOffsetMs), steady: () => world.now };
    this.startedAt = world.now;
    this.#disturbedAt = world.now;
    this.heldUpAt = world.now;
    this.clockSetAt = Number.NEGATIVE_INFINITY;
  }

  setClock(offsetMs: number): void {
    if (this.clockOffsetMs === offsetMs) return;
    this.clockOffsetMs = offsetMs;
    this.clockSetAt = this.#world.now;
    this.disturb();
  }

  /** Since when no fault has touched it: what is promised of undisturbed processes is promised from then on. */
  get calmSince(): number {
    return this.isPaused ? this.#world.now : this.#disturbedAt;
  }

  disturb(): void {
    this.#disturbedAt = this.#world.now;
  }

  holdUp(): void {
    this.disturb();
    this.heldUpAt = this.#world.now;
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
    this.holdUp();
    this.#world.after(null, ms, `${this.name} continues`, () => {
      this.isPaused = false;
      this.holdUp();
      for (const entry of this.backlog.splice(0)) this.#world.again(entry);
    });
  }
}

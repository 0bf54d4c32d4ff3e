// Every call of a process to something outside of it: a statement, a call to an engine, a request to a receiver. Here it
// takes time, and here it goes wrong.
import type { CallKind, Faults } from './faults.ts';
import type { Machine, World } from './world.ts';

export interface OutsideCall<T> {
  kind: CallKind;
  label: string;
  /** What the call does out there, and its answer. What it throws is the answer too. */
  effect: () => T;
  /** How long it takes, from and to, in milliseconds. */
  takesMs: readonly [number, number];
  /** The error that the caller gets where call or answer are lost. */
  lost: () => Error;
  /** After how long the caller gets that error. */
  givesUpAfterMs: number;
  /** What the other side does when it notices that. */
  onLost?: () => void;
}

export class Outside {
  readonly #world: World;
  readonly #faults: Faults;

  constructor(world: World, faults: Faults) {
    this.#world = world;
    this.#faults = faults;
  }

  /** Before a lease is confirmed, the process may stand still for so long that it has lost it. */
  async beforeConfirmation(machine: Machine): Promise<void> {
    if (machine.isDead || !this.#faults.pausesConfirmation()) return;
    machine.pause(this.#world.random.between(15_000, 60_000));
    await new Promise<void>((resolve) => {
      this.#world.after(machine, 0, 'about to confirm its lease', resolve);
    });
  }

  call<T>(machine: Machine, call: OutsideCall<T>): Promise<T> {
    const { kind, label, effect, takesMs, lost, givesUpAfterMs, onLost = () => {} } = call;
    const world = this.#world;
    // Code that still runs while its process dies reaches nothing outside.
    if (machine.isDead) return new Promise(() => {});
    const fault = this.#faults.ofCall(kind);
    const takes = world.random.between(takesMs[0], takesMs[1]);
    const text = fault === null ? label : `${label} [${fault}]`;
    if (fault !== null) machine.disturb();
    return new Promise<T>((resolve, reject) => {
      let settle = () => reject(lost());
      const carryOut = () => {
        try {
          const answer = effect();
          settle = () => resolve(answer);
        } catch (error) {
          settle = () => reject(error);
        }
      };
      const late = (ms: number, how: string, run: () => void) =>
        world.after(machine, ms, `${label} is ${how}`, () => {
          machine.disturb();
          run();
        });
      const giveUp = () => late(givesUpAfterMs, 'given up', () => reject(lost()));
      const answerLater = (ms: number) => late(ms, 'answered', () => settle());
      switch (fault) {
        case null:
          world.after(machine, takes, text, () => settle(), carryOut);
          return;
        case 'pause':
          // In the middle of what it does, which it then goes on with: it cannot know how long that took.
          world.after(
            machine,
            takes,
            text,
            () => settle(),
            () => {
              carryOut();
              machine.pause(world.random.between(1000, 40_000));
            },
          );
          return;
        case 'crash_before':
          world.after(machine, takes, text, () => machine.crash());
          return;
        case 'crash_after':
          world.after(machine, takes, text, () => machine.crash(), carryOut);
          return;
        case 'lost_call':
          world.after(null, takes, text, onLost);
          giveUp();
          return;
        case 'lost_answer':
          world.after(null, takes, text, onLost, carryOut);
          giveUp();
          return;
        case 'late_answer':
          world.after(null, takes, text, () => {}, carryOut);
          answerLater(takes + world.random.between(0.5, 0.98) * givesUpAfterMs);
          return;
        case 'doubled':
          world.after(machine, takes, text, () => settle(), carryOut);
          world.after(null, takes + world.random.between(0, 2000), `${text} again`, () => {}, repeat(effect));
      }
    });
  }
}

/** The second of two equal calls: its answer goes nowhere. */
const repeat = (effect: () => unknown) => () => {
  try {
    effect();
  } catch {
    // As above.
  }
};

// What goes wrong, and how often. Every seed has a mix of its own: some faults are off, others frequent, so that a rare
// pair of faults is not always drowned by the rest.
import type { Random } from './random.ts';

/** What can become of one call to the outside. */
export type CallFault =
  | 'pause'
  | 'crash_before'
  | 'crash_after'
  | 'lost_call'
  | 'lost_answer'
  | 'late_answer'
  | 'doubled';

export type CallKind = 'statement' | 'commit' | 'engine' | 'probe' | 'send' | 'signal';

/** Which faults a call of this kind can have: a statement is never carried out twice, TCP sees to that. */
const possible: Record<CallKind, readonly CallFault[]> = {
  statement: ['pause', 'crash_before', 'crash_after', 'lost_call', 'lost_answer', 'late_answer'],
  commit: ['crash_before', 'crash_after', 'lost_call', 'lost_answer', 'late_answer'],
  engine: ['pause', 'crash_before', 'crash_after', 'lost_call', 'lost_answer', 'late_answer', 'doubled'],
  probe: ['lost_call', 'late_answer'],
  send: ['crash_before', 'crash_after', 'lost_call', 'lost_answer', 'late_answer', 'doubled'],
  signal: ['lost_call', 'late_answer', 'doubled'],
};

/** The most that a seed may have of each, per call. */
const highest: Record<CallFault, number> = {
  pause: 0.015,
  crash_before: 0.006,
  crash_after: 0.006,
  lost_call: 0.03,
  lost_answer: 0.03,
  late_answer: 0.03,
  doubled: 0.05,
};

/** In how many seeds, and how often there, a process stands still before it confirms its lease. */
const pausedConfirmations = { seeds: 0.5, share: 0.25 };

/** Things that happen by themselves, and the most of each in a minute. */
const highestPerMinute = {
  crash: 20,
  pause: 30,
  long_pause: 10,
  clock_jump: 15,
  full_disk: 12,
  reconnect: 10,
  engine_down: 8,
  engine_restart: 5,
  engine_forgets: 10,
  instance_exits: 20,
  receiver_down: 15,
} as const;

export type Incident = keyof typeof highestPerMinute;

export interface FaultSwitches {
  /** By how much the clock of a control process may jump. */
  clockJumpMs: number;
  /** The same for a router: what it measures is by its own clock. */
  routerClockJumpMs: number;
}

export class Faults {
  /** Off at the end of a run, which must then calm down. */
  isOn = true;
  count = 0;
  readonly perMinute: Record<Incident, number>;
  readonly switches: FaultSwitches;
  readonly #random: Random;
  readonly #rates: Record<CallFault, number>;
  readonly #pausedConfirmations: number;

  constructor(random: Random, switches: FaultSwitches) {
    this.#random = random;
    this.switches = switches;
    // Where much goes wrong, little gets done; where little does, what goes wrong meets more.
    const intensity = random.pick([0.1, 0.3, 1] as const);
    const drawn = (top: number) => (random.chance(0.5) ? intensity * top * random.next() : 0);
    const draw = <K extends string>(tops: Readonly<Record<K, number>>) =>
      Object.fromEntries(Object.entries<number>(tops).map(([name, top]) => [name, drawn(top)])) as Record<K, number>;
    this.#rates = draw(highest);
    this.perMinute = draw(highestPerMinute);
    this.#pausedConfirmations = random.chance(pausedConfirmations.seeds) ? pausedConfirmations.share : 0;
  }

  /** Whether a process stands still before it confirms its lease, for so long that it has lost it: leases are there for that. */
  pausesConfirmation(): boolean {
    if (!this.isOn || !this.#random.chance(this.#pausedConfirmations)) return false;
    this.count++;
    return true;
  }

  /** What becomes of this call; null: what should. */
  ofCall(kind: CallKind): CallFault | null {
    if (!this.isOn) return null;
    let left = this.#random.next();
    for (const fault of possible[kind]) {
      left -= this.#rates[fault];
      if (left >= 0) continue;
      this.count++;
      return fault;
    }
    return null;
  }
}

// What is done to which part and when: a list that follows from the seed and the length of the run.
import { type Random, seeded } from './random.ts';
import type { DatabaseKind } from './records.ts';

export const faultKinds = [
  'kill worker',
  'kill control',
  'kill supervisor',
  'kill service',
  'kill receiver',
  'stop worker',
  'stop control',
  'stop supervisor',
  'stop receiver',
  'restart docker',
  'kill docker',
  'stop docker',
  'restart postgres',
  'kill postgres',
] as const;
export type FaultKind = (typeof faultKinds)[number];

export interface PlannedFault {
  atMs: number;
  kind: FaultKind;
  /** From 0 to 1: which of those that there are at that time. */
  pick: number;
  /** How long it is stopped, or away. */
  forMs: number;
}

/** Longer than an environment's lease and shorter than a router's, of which the first must change nothing for visitors. */
const overLeaseMs: [number, number] = [21_000, 30_000];
const shortMs: [number, number] = [200, 5000];
const meanGapMs = 4000;

const ofProcesses = {
  'kill worker': 8,
  'kill control': 5,
  'kill receiver': 4,
  'kill supervisor': 1,
  'kill service': 1,
  'stop worker': 4,
  'stop control': 4,
  'stop receiver': 2,
  'stop supervisor': 1,
} as const;

const ofEngine = ['restart docker', 'stop docker', 'kill docker'] as const;
const ofDatabase = ['restart postgres', 'kill postgres'] as const;

export function planFaults(seed: number, minutes: number, database: DatabaseKind): PlannedFault[] {
  const random = seeded(seed);
  const lengthMs = minutes * 60_000;
  const faults: PlannedFault[] = [];
  for (let atMs = random.between(0, meanGapMs); atMs < lengthMs; atMs += random.between(0.2, 1.8) * meanGapMs) {
    faults.push(fault(random, atMs, random.choose(ofProcesses)));
  }
  // Each of these at least once, however short the run; together so rarely that most of it has an engine and a database.
  for (const [kinds, everyMinutes] of [
    [ofEngine, 3],
    [database === 'postgres' ? ofDatabase : [], 2],
  ] as const) {
    const count = kinds.length && Math.max(kinds.length, Math.round(minutes / everyMinutes));
    for (let i = 0; i < count; i++) {
      const atMs = ((i + random.between(0.2, 0.8)) / count) * lengthMs;
      faults.push(fault(random, atMs, kinds[i % kinds.length]!));
    }
  }
  return faults.sort((a, b) => a.atMs - b.atMs);
}

function fault(random: Random, atMs: number, kind: FaultKind): PlannedFault {
  const isLong = kind.startsWith('stop') && random.chance(0.3);
  const [low, high] = isLong ? overLeaseMs : shortMs;
  return { atMs: Math.round(atMs), kind, pick: random.next(), forMs: Math.round(random.between(low, high)) };
}

// The cells of the Monte-Carlo study of how canaries are judged: canaries that equal stable, and canaries that are worse.
import { type Behaviour, type Ended, runRollout, type World } from './worlds.ts';

type Place = Pick<World, 'perSecond' | 'share' | 'visitors'>;

export const percent = (share: number): string => `${Math.round(share * 10_000) / 100} %`;
const whoOf = ({ visitors }: Place) => (visitors === null ? 'no cookies' : `${visitors} visitors`);
const placeOf = (place: Place) => `${whoOf(place)}, ${place.perSecond}/s, canary ${percent(place.share)}`;

/** The warm-up is left out where it is not what is looked at: its errors count anyway. */
const warm = { warmup_s: 0 };

const equal = (what: string, place: Place, behaviour: Behaviour, more: Partial<World> = {}): [string, World] => [
  `${what}; ${placeOf(place)}`,
  { policy: warm, ...place, stable: behaviour, canary: behaviour, ...more },
];

export function* equalWorlds(): Generator<[string, World]> {
  for (const errorRate of [0, 0.001, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5]) {
    for (const share of [0.01, 0.1, 0.5])
      yield equal(`independent errors ${percent(errorRate)}`, { perSecond: 20, share, visitors: null }, { errorRate });
    yield equal(
      `independent errors ${percent(errorRate)}`,
      { perSecond: 2, share: 0.1, visitors: null },
      { errorRate },
    );
  }
  for (const share of [0.01, 0.1, 0.5]) {
    yield equal('independent errors 1 %', { perSecond: 0.5, share, visitors: null }, { errorRate: 0.01 });
    yield equal('independent errors 1 %', { perSecond: 200, share, visitors: 40_000 }, { errorRate: 0.01 });
  }
  for (const errorRate of [0.01, 0.2]) {
    for (const [visitors, failingVisitors] of [
      [null, 0],
      [400, 0.02],
    ] as const) {
      const place = { perSecond: 20, share: 0.1, visitors };
      const also = failingVisitors === 0 ? '' : ` and ${percent(failingVisitors)} always fail`;
      const behaviour = { errorRate, failingVisitors };
      yield equal(`independent errors ${percent(errorRate)}${also}, judged every second`, place, behaviour, {
        looks: 10,
      });
    }
  }
  for (const [visitors, failingVisitors] of [
    [400, 0.02],
    [400, 0.2],
    [40_000, 0.01],
  ] as const) {
    for (const perSecond of [0.5, 5, 20, 100]) {
      for (const share of [0.01, 0.1, 0.5])
        yield equal(`${percent(failingVisitors)} always fail`, { perSecond, share, visitors }, { failingVisitors });
    }
  }
  const usual: Place = { perSecond: 20, share: 0.1, visitors: null };
  const known: Place = { ...usual, visitors: 400 };
  for (const place of [usual, known]) {
    yield equal('bursts on both sides', place, { errorRate: 0.005 }, { blips: 0.5 });
    yield equal('both sides slow at times', place, {}, { slowPhases: 5 });
    yield equal('heavy-tailed latency', place, { tail: 50 });
    yield equal('cold start, three times slower', place, {}, { canary: { cold: 3 }, policy: {} });
  }
  for (const instances of [2, 4]) {
    const bad = { badInstance: true };
    for (const place of [{ ...usual, share: 0.3 }, usual, known])
      yield equal(`one bad instance of ${instances}`, place, {}, { canary: bad, instances });
    yield equal(`one bad instance of ${instances} on each side`, usual, bad, { instances });
  }
  const [lower, higher] = [
    { medianMs: 20, tail: 5 },
    { medianMs: 24, tail: 5 / 1.2 },
  ];
  yield [`median 20 % slower, same p95; ${placeOf(usual)}`, { policy: warm, ...usual, stable: lower, canary: higher }];
}

export interface Worse {
  world: World;
  /** The share of rollouts in which it has to be found. */
  found: number;
}

export function* worseWorlds(): Generator<[string, Worse]> {
  const usual: Place = { perSecond: 20, share: 0.1, visitors: null };
  const worse = (what: string, stable: Behaviour, canary: Behaviour, found: number, place = usual): [string, Worse] => [
    `${what}; ${placeOf(place)}`,
    { world: { policy: warm, ...place, stable, canary }, found },
  ];
  yield worse('all fail', {}, { errorRate: 1 }, 1);
  yield worse('all fail', {}, { errorRate: 1 }, 0.99, { ...usual, perSecond: 2 });
  yield worse('all fail', {}, { errorRate: 1 }, 0.99, { ...usual, perSecond: 2, visitors: 400 });
  yield worse('errors 2 → 20 %', { errorRate: 0.02 }, { errorRate: 0.2 }, 0.99);
  yield worse('errors 3 → 15 %', { errorRate: 0.03 }, { errorRate: 0.15 }, 0.99);
  yield worse('errors 1 → 5 %', { errorRate: 0.01 }, { errorRate: 0.05 }, 0.95);
  yield worse('errors 0.1 → 1.05 %', { errorRate: 0.001 }, { errorRate: 0.0105 }, 0.3);
  yield worse('p95 twice as long', {}, { medianMs: 40 }, 0.99);
  yield worse('one path of 40 dead', {}, { deadPaths: 1 }, 0.9);
  const noise = { errorRate: 0.01 };
  yield worse('one path of 40 dead under 1 % of errors', noise, { ...noise, deadPaths: 1 }, 0.5);
  const checkout = worse(
    'the checkout dead, 1 % of requests, under 1 % of errors',
    noise,
    { ...noise, deadCheckout: true },
    0,
  );
  checkout[1].world.checkout = 0.01;
  yield checkout;
  yield worse(
    '20 % more where 2 % always fail',
    { failingVisitors: 0.02 },
    { failingVisitors: 0.02, errorRate: 0.2 },
    0.95,
    {
      ...usual,
      visitors: 400,
    },
  );
}

/** Each world has seeds of its own: what is unlucky in one is not so in all. */
const firstSeed = (name: string): number =>
  [...name].reduce((hash, letter) => (hash * 31 + letter.charCodeAt(0)) | 0, 7);

/** The same rollouts every time. */
export const run = (name: string, world: World, rollouts: number): Ended[] =>
  Array.from({ length: rollouts }, (_, i) => runRollout(world, firstSeed(name) + i));

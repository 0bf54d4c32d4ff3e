// How strongly requests speak for a canary that is worse than stable. No I/O. The method, its assumptions and what was
// simulated: docs/decisions/canary-analysis.md.
//
// Both sides are compared within the same ten seconds: given how many requests were bad on both sides together, how many
// of them are the canary's does not depend on what moves both. The likelihood ratio of "the odds of a bad request are θ
// times higher" against "they are equal" is multiplied over the windows and averaged over several θ. Its logarithm is
// divided by the design effect: how much more the bad requests vary between groups of visitors than independent ones would.
// Everything is a sum over windows, so a window is added once and never read again.

import { groupCount } from '../../traffic/request-detail.ts';

/** Of so many requests, so many were bad. */
export interface Count {
  of: number;
  bad: number;
}

/** The same, also for each group of visitors. Without groups every request is taken for a visitor of its own. */
export interface GroupedCount extends Count {
  groups?: ReadonlyMap<number, Count>;
}

const oddsRatios = [1.5, 2, 3, 5, 10, 30, 100];
const logOddsRatios = oddsRatios.map(Math.log);

export const rateOf = ({ of, bad }: Count): number => (of === 0 ? 0 : bad / of);

/** The logarithm of a likelihood ratio for each odds ratio. */
export type LogRatios = number[];

export const noRatios = (): LogRatios => oddsRatios.map(() => 0);

export const addRatios = (to: LogRatios, more: LogRatios): LogRatios => to.map((one, i) => one + more[i]!);

/** Their mean, and of that the logarithm. */
export function logMean(ratios: readonly number[]): number {
  const top = Math.max(...ratios);
  return top + Math.log(ratios.reduce((sum, one) => sum + Math.exp(one - top), 0) / ratios.length);
}

/**
 * Of one window. Given the requests of both sides and the bad ones of both together, those of the canary are
 * hypergeometric where the odds are equal, and Fisher's noncentral hypergeometric where they are not.
 */
export function ratiosOf(canary: Count, stable: Count): LogRatios {
  const bad = canary.bad + stable.bad;
  const least = Math.max(0, bad - stable.of);
  const most = Math.min(canary.of, bad);
  if (least === most) return noRatios();
  const logAll = logChoose(canary.of + stable.of, bad);
  return oddsRatios.map((odds, i) => {
    const logOdds = logOddsRatios[i]!;
    const top = mostLikely(canary.of, stable.of, bad, odds, least, most);
    const logTop = logChoose(canary.of, top) + logChoose(stable.of, bad - top) + top * logOdds;
    const sum = sumAround(top, canary.of, stable.of, bad, odds, least, most);
    return canary.bad * logOdds - (logTop + Math.log(sum) - logAll);
  });
}

/** The most likely number of bad requests of the canary. */
function mostLikely(canary: number, stable: number, bad: number, odds: number, least: number, most: number): number {
  const a = odds - 1;
  const b = odds * (canary + bad + 2) + stable - bad;
  const c = odds * (canary + 1) * (bad + 1);
  const root = (2 * c) / (b + Math.sqrt(b * b - 4 * a * c));
  return Math.min(most, Math.max(least, Math.floor(root)));
}

/** The sum of all probabilities, in units of the one at `top`. */
function sumAround(
  top: number,
  canary: number,
  stable: number,
  bad: number,
  odds: number,
  least: number,
  most: number,
): number {
  const negligible = 1e-12;
  const rise = (k: number) => (odds * (canary - k) * (bad - k)) / ((k + 1) * (stable - bad + k + 1));
  let sum = 1;
  for (let k = top, term = 1; k < most && term > negligible; k++) {
    term *= rise(k);
    sum += term;
  }
  for (let k = top, term = 1; k > least && term > negligible; k--) {
    term /= rise(k - 1);
    sum += term;
  }
  return sum;
}

/** How unevenly the bad requests of one side are spread over its groups of visitors. */
class Spread {
  readonly #excess = new Float64Array(groupCount);
  readonly #active = new Uint8Array(groupCount);
  /** What independent requests would vary. */
  variance = 0;

  add({ of, bad, groups }: GroupedCount): void {
    if (!groups || of === 0) return;
    const rate = bad / of;
    for (const [group, count] of groups) {
      this.#active[group] = 1;
      this.#excess[group]! += count.bad - count.of * rate;
    }
    this.variance += of * rate * (1 - rate);
  }

  /** The squares of what each group has more or fewer than its share. The shares are estimated from the same groups. */
  squares(): number {
    const active = this.#active.reduce((sum, one) => sum + one, 0);
    if (active < 2) return 0;
    return (this.#excess.reduce((sum, one) => sum + one * one, 0) * active) / (active - 1);
  }

  copy(): Spread {
    const copy = new Spread();
    copy.#excess.set(this.#excess);
    copy.#active.set(this.#active);
    copy.variance = this.variance;
    return copy;
  }
}

/** The evidence of one kind of bad request: failed, slow, refused. */
export class Evidence {
  canary: Count = { of: 0, bad: 0 };
  stable: Count = { of: 0, bad: 0 };
  ratios = noRatios();
  #ofCanary = new Spread();
  #ofStable = new Spread();

  add(canary: GroupedCount, stable: GroupedCount): void {
    this.canary = sumOf(this.canary, canary);
    this.stable = sumOf(this.stable, stable);
    this.ratios = addRatios(this.ratios, ratiosOf(canary, stable));
    this.#ofCanary.add(canary);
    this.#ofStable.add(stable);
  }

  /** How many bad requests are as good as one that is independent; 1 where they do not cluster. */
  designEffect(): number {
    const variance = this.#ofCanary.variance + this.#ofStable.variance;
    if (variance === 0) return 1;
    return Math.max(1, (this.#ofCanary.squares() + this.#ofStable.squares()) / variance);
  }

  /** The logarithm of how many to one the requests speak for a canary that is worse. */
  logOdds(designEffect = this.designEffect()): number {
    return logMean(this.ratios) / designEffect;
  }

  copy(): Evidence {
    const copy = new Evidence();
    Object.assign(copy, { canary: this.canary, stable: this.stable, ratios: this.ratios });
    copy.#ofCanary = this.#ofCanary.copy();
    copy.#ofStable = this.#ofStable.copy();
    return copy;
  }
}

export const sumOf = (a: Count, b: Count): Count => ({ of: a.of + b.of, bad: a.bad + b.bad });

const logChoose = (n: number, k: number): number => logFactorial(n) - logFactorial(k) - logFactorial(n - k);

const smallFactorials = new Float64Array(256);
for (let n = 2; n < smallFactorials.length; n++) smallFactorials[n] = smallFactorials[n - 1]! + Math.log(n);

/** Stirling's series where the number is not small. */
function logFactorial(n: number): number {
  if (n < smallFactorials.length) return smallFactorials[n]!;
  return (n + 0.5) * Math.log(n) - n + 0.5 * Math.log(2 * Math.PI) + 1 / (12 * n) - 1 / (360 * n ** 3);
}

const logBeta = (a: number, b: number): number => logGamma(a) + logGamma(b) - logGamma(a + b);

/** Stirling's series, from 10 on; below, by steps of one. */
function logGamma(x: number): number {
  let below = 1;
  let at = x;
  for (; at < 10; at++) below *= at;
  const square = 1 / (at * at);
  const series = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / at;
  return (at - 0.5) * Math.log(at) - at + 0.5 * Math.log(2 * Math.PI) + series - Math.log(below);
}

/**
 * For a canary that has nothing to be compared with: how many to one its requests speak for a rate above this limit. All
 * rates are averaged (Jeffreys' prior), against the greatest likelihood within the limit.
 */
export function logOddsAbove({ of, bad }: Count, limit: number): number {
  if (of === 0 || bad / of <= limit) return Number.NEGATIVE_INFINITY;
  const mixture = logBeta(bad + 0.5, of - bad + 0.5) - logBeta(0.5, 0.5);
  const good = of - bad;
  return mixture - (bad * Math.log(limit) + (good === 0 ? 0 : good * Math.log(1 - limit)));
}

/** How probable it is that the rate is within the limit, as far as the counts tell (Jeffreys' prior). */
export function probablyWithin({ of, bad }: Count, limit: number): number {
  if (limit >= 1) return 1;
  return limit <= 0 ? 0 : betaBelow(limit, bad + 0.5, of - bad + 0.5);
}

/** The regularized incomplete beta function, by its continued fraction (Lentz' method). */
function betaBelow(x: number, a: number, b: number): number {
  if (x > (a + 1) / (a + b + 2)) return 1 - betaBelow(1 - x, b, a);
  const tiny = 1e-300;
  const kept = (value: number) => (Math.abs(value) < tiny ? tiny : value);
  let c = 1;
  let d = 1 / kept(1 - ((a + b) * x) / (a + 1));
  let fraction = d;
  for (let m = 1; m <= 10_000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    const before = fraction;
    for (const term of [even, odd]) {
      d = 1 / kept(1 + term * d);
      c = kept(1 + term / c);
      fraction *= d * c;
    }
    if (Math.abs(fraction - before) <= 1e-12 * fraction) break;
  }
  return (Math.exp(a * Math.log(x) + b * Math.log(1 - x) - logBeta(a, b)) * fraction) / a;
}

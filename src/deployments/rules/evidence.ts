// How strongly counts speak for a worse canary. No I/O. Why this test: docs/decisions/canary-analysis.md.
//
// Odds are a mixture of likelihoods over all rates (Jeffreys' prior), divided by the greatest likelihood that "it is no
// worse" allows. If it is no worse, odds of n to 1 are ever reached in at most one of n rollouts, however often one looks.

/** Of so many requests, so many were bad. */
export interface Count {
  of: number;
  bad: number;
}

export const rateOf = ({ of, bad }: Count): number => (of === 0 ? 0 : bad / of);

/** Odds that the first rate is above the second. */
export function oddsWorse(canary: Count, stable: Count): number {
  if (stable.of === 0 || rateOf(canary) <= rateOf(stable)) return 0;
  const pooled = { of: canary.of + stable.of, bad: canary.bad + stable.bad };
  return Math.exp(logMixture(canary) + logMixture(stable) - logLikelihood(pooled, rateOf(pooled)));
}

/** Odds that the rate is above this limit. */
export function oddsAbove(count: Count, limit: number): number {
  if (rateOf(count) <= limit) return 0;
  return Math.exp(logMixture(count) - logLikelihood(count, limit));
}

/** How probable it is that the rate is within the limit, as far as the counts tell (Jeffreys' prior). */
export function probablyWithin({ of, bad }: Count, limit: number): number {
  if (limit >= 1) return 1;
  return limit <= 0 ? 0 : betaBelow(limit, bad + 0.5, of - bad + 0.5);
}

function logMixture({ of, bad }: Count): number {
  return logBeta(bad + 0.5, of - bad + 0.5) - logBeta(0.5, 0.5);
}

function logLikelihood({ of, bad }: Count, rate: number): number {
  const times = (n: number, p: number) => (n === 0 ? 0 : n * Math.log(p));
  return times(bad, rate) + times(of - bad, 1 - rate);
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

// What visitors got, of all routers together: how many requests each revision was sent, and on which side of a canary each
// visitor was.
import { buckets, seesCanary } from '../src/traffic/balance.ts';
import type { EnvironmentRoutes, Share } from '../src/traffic/data-plane.ts';
import { environmentOf, type OfEnvironment } from './facts.ts';

type Canary = Pick<Share, 'revision' | 'percent'>;

export class Visits {
  /** By environment and revision. */
  readonly sent = new Map<string, number>();
  onWrong: (invariant: string, message: string) => void = () => {};
  /** The lowest percentage at which a visitor was on the canary. */
  readonly #onCanaryAt = new Map<string, number>();
  readonly #counted = new Map<string, number>();

  noteSent(of: OfEnvironment, revision: number): void {
    const key = revisionOf(of, revision);
    this.sent.set(key, (this.sent.get(key) ?? 0) + 1);
  }

  /** Raising the percentage moves visitors to the canary and never back. */
  noteSide(of: OfEnvironment, { revision, percent }: Canary, bucket: number, isOnCanary: boolean): void {
    const key = `${revisionOf(of, revision)} ${bucket}`;
    const before = this.#onCanaryAt.get(key);
    if (isOnCanary) this.#onCanaryAt.set(key, Math.min(percent, before ?? percent));
    else if (before !== undefined && percent >= before) {
      this.onWrong('no visitor moves back', `${key} was on the canary at ${before} %, and is not at ${percent} %`);
    }
  }

  /** Of all visitors there can be, exactly the share of the canary sees it. */
  noteShares({ shares: [, canary], ...of }: EnvironmentRoutes): void {
    if (!canary) return;
    const seen = this.#seeing(canary);
    const wanted = (canary.percent * buckets) / 100;
    if (seen === wanted) return;
    const text = `${of.project} ${of.environment}: ${seen} of ${buckets} visitors see r${canary.revision} at ${canary.percent} %`;
    this.onWrong('a canary is seen by its share of the visitors', text);
  }

  #seeing({ revision, percent }: Canary): number {
    const key = `${revision} ${percent}`;
    const known = this.#counted.get(key);
    if (known !== undefined) return known;
    let seen = 0;
    for (let bucket = 0; bucket < buckets; bucket++) if (seesCanary(bucket, revision, percent)) seen++;
    this.#counted.set(key, seen);
    return seen;
  }
}

export const revisionOf = (of: OfEnvironment, revision: number): string => `${environmentOf(of)} ${revision}`;

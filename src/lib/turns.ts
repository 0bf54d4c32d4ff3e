// A queue in which owners take turns: what one of them has put in delays the others by at most one item each. `maxEach`
// is how many items of an owner may be under way at the same time.

export class Turns<T> {
  readonly #maxEach: number;
  /** In the order of their next turn. */
  readonly #waiting = new Map<string, T[]>();
  readonly #underWay = new Map<string, number>();

  constructor(maxEach = Number.POSITIVE_INFINITY) {
    this.#maxEach = maxEach;
  }

  add(owner: string, item: T): void {
    const own = this.#waiting.get(owner);
    if (own) own.push(item);
    else this.#waiting.set(owner, [item]);
  }

  waitingOf(owner: string): number {
    return this.#waiting.get(owner)?.length ?? 0;
  }

  /** The first item of the owner whose turn it is; it is under way until `done`. undefined: there is none. */
  next(): T | undefined {
    for (const [owner, items] of this.#waiting) {
      const underWay = this.#underWay.get(owner) ?? 0;
      if (underWay >= this.#maxEach) continue;
      const item = items.shift()!;
      this.#waiting.delete(owner);
      if (items.length > 0) this.#waiting.set(owner, items);
      this.#underWay.set(owner, underWay + 1);
      return item;
    }
    return undefined;
  }

  /** One of the owner's items is no longer under way. */
  done(owner: string): void {
    const left = (this.#underWay.get(owner) ?? 0) - 1;
    if (left > 0) this.#underWay.set(owner, left);
    else this.#underWay.delete(owner);
  }
}

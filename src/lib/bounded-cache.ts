// Caches of bounded size.

/**
 * Remembers computed values by key. When `max` values are held it starts over: a lookup then costs no more than one in a
 * Map, which matters more here than keeping the values used last. `LruCache` keeps those.
 */
export class Memo<T extends object | string | null, K = string> {
  readonly #values = new Map<K, T>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  /** The remembered value, else what `compute` returns. If it throws, nothing is remembered. */
  get(key: K, compute: (key: K) => T): T {
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    const value = compute(key);
    if (this.#values.size >= this.#max) this.#values.clear();
    this.#values.set(key, value);
    return value;
  }

  clear(): void {
    this.#values.clear();
  }
}

/** A map of bounded size that drops the least recently used entry. */
export class LruCache<T> {
  readonly #entries = new Map<string, T>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get(key: string): T | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  set(key: string, value: T): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size > this.#max) this.#entries.delete(this.#entries.keys().next().value!);
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  values(): Iterable<T> {
    return this.#entries.values();
  }

  clear(): void {
    this.#entries.clear();
  }
}

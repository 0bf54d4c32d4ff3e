// Which backend of HAProxy stands for which revision. HAProxy 2.6 cannot add backends at run time, so it starts with
// spare ones, and a reload that adds more is rare.

/** `<project>/<environment>/<revision>`. */
export type BackendUse = string;

export class Backends {
  readonly #uses = new Map<BackendUse, string>();
  #free: string[] = [];
  #size = 0;

  constructor(size: number, uses: Iterable<[BackendUse, string]> = []) {
    for (const [use, name] of uses) this.#uses.set(use, name);
    const taken = new Set(this.#uses.values());
    this.grow(Math.max(size, ...[...taken].map((name) => Number(name.slice(1)))));
    this.#free = this.#free.filter((name) => !taken.has(name));
  }

  get size(): number {
    return this.#size;
  }

  get free(): number {
    return this.#free.length;
  }

  uses(): BackendUse[] {
    return [...this.#uses.keys()];
  }

  nameOf(use: BackendUse): string | undefined {
    return this.#uses.get(use);
  }

  /** Null: none is left, and the pool has to grow. */
  assign(use: BackendUse): string | null {
    const name = this.#uses.get(use) ?? this.#free.shift() ?? null;
    if (name !== null) this.#uses.set(use, name);
    return name;
  }

  release(use: BackendUse): void {
    const name = this.#uses.get(use);
    if (name === undefined) return;
    this.#uses.delete(use);
    this.#free.push(name);
  }

  /** Gives the names that are new. */
  grow(size: number): string[] {
    const names = Array.from({ length: Math.max(0, size - this.#size) }, (_, i) => `b${this.#size + i + 1}`);
    this.#size += names.length;
    this.#free.push(...names);
    return names;
  }
}

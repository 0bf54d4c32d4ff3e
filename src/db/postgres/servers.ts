/**
 * The addresses of one database, of which one takes writes at a time: new connections go to the address that last worked.
 * The connections of a pool share this, so that one failure is enough to move all of them.
 */
export class Servers {
  readonly #urls: readonly string[];
  #current = 0;
  /** Connections that have not answered since then may be as dead as the one that was found silent. */
  suspectBefore = Number.NEGATIVE_INFINITY;

  constructor(urls: readonly string[]) {
    this.#urls = urls;
  }

  get count(): number {
    return this.#urls.length;
  }

  get current(): string {
    return this.#urls[this.#current]!;
  }

  /** This address failed: the next connection goes to the one after it. Does nothing if others went on already. */
  leave(url: string): void {
    if (url === this.current) this.#current = (this.#current + 1) % this.#urls.length;
  }
}

// A queue of looks per region, each with workers of its own: a region whose engine takes its time delays no other.

const workersPerRegion = 16;

type Work = () => Promise<void>;

export class RegionQueues {
  readonly #waiting = new Map<string, Work[]>();
  readonly #running = new Map<string, Set<Promise<void>>>();

  /** Runs it once a worker of the region is free. `work` may not fail. */
  add(region: string, work: Work): void {
    const waiting = this.#waiting.get(region) ?? [];
    this.#waiting.set(region, waiting);
    waiting.push(work);
    this.#next(region);
  }

  /** Drops what waits, and waits for what runs. */
  async stop(): Promise<void> {
    this.#waiting.clear();
    await Promise.all([...this.#running.values()].flatMap((running) => [...running]));
  }

  #next(region: string): void {
    const running = this.#running.get(region) ?? new Set();
    this.#running.set(region, running);
    if (running.size >= workersPerRegion) return;
    const work = this.#waiting.get(region)?.shift();
    if (!work) return;
    const done = work().finally(() => {
      running.delete(done);
      this.#next(region);
    });
    running.add(done);
  }
}

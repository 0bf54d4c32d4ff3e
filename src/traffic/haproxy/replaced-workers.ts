// Workers that a reload has replaced. One still takes a request from a connection it has, by the table of before; so it
// counts as a router until it has ended, or no connection can bring it a request any more.
import type { RouterState } from '../data-plane.ts';
import { isAlive } from './process.ts';

export class ReplacedWorkers {
  readonly #requestsForMs: number;
  readonly #until = new Map<string, { state: RouterState; until: number }>();

  /** `requestsForMs`: how long a connection may be idle before its next request. */
  constructor(requestsForMs: number) {
    this.#requestsForMs = requestsForMs;
  }

  add(state: RouterState, nowMs: number): void {
    this.#until.set(state.id, { state, until: nowMs + this.#requestsForMs });
  }

  states(): RouterState[] {
    return [...this.#until.values()].map(({ state }) => state);
  }

  /** Takes out those that get no more requests, and gives their ids. */
  takeEnded(nowMs: number): string[] {
    const ended = [...this.#until].filter(([id, { until }]) => nowMs >= until || !isAlive(id)).map(([id]) => id);
    for (const id of ended) this.#until.delete(id);
    return ended;
  }
}

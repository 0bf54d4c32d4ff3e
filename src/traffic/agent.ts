// Keeps a data plane up to date with the database, and the database with what the data plane measured.
import type { Db } from '../db/database.ts';
import type { RetentionClock } from '../db/retention.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import type { Loop } from '../lib/loop.ts';
import type { Loops } from '../lib/loops.ts';
import { subscribe } from '../signals/signals.ts';
import type { DataPlane } from './data-plane.ts';
import type { Measurement } from './measure/measurements.ts';
import { deleteTrafficBefore, keptForMs, loadRoutingTable, readRoutingVersion, storeMeasurements } from './queries.ts';

interface RouterAgentParts {
  db: Db;
  clock: Clock;
  retention: RetentionClock;
  log: Log;
  loops: Loops;
  dataPlane: DataPlane;
  domain: string;
  /** Of this process: each keeps its own counts. */
  id: string;
  /** What the data plane saw, on its way to the database. */
  onMeasured?(measurements: Measurement[]): void;
}

/** The safety net: a change whose signal got lost is noticed within this time. */
export const routerPollMs = 1000;
/** How old what rollouts and alerts know of the traffic is at most. */
const storeEveryMs = 500;
const drainMs = 10_000;
const forgetEveryMs = 3600_000;

export class RouterAgent {
  readonly #parts: RouterAgentParts;
  #version: string | null = null;
  #forgotAt = 0;
  #loops: Loop[] = [];
  #unsubscribe: (() => void) | null = null;

  constructor(parts: RouterAgentParts) {
    this.#parts = parts;
  }

  start(): void {
    const { db, loops } = this.#parts;
    const routing = loops.start({ name: 'routing', intervalMs: routerPollMs, step: () => this.#refresh() });
    const measurements = loops.start({ name: 'measurements', intervalMs: storeEveryMs, step: () => this.#store() });
    this.#loops = [routing, measurements];
    this.#unsubscribe = subscribe(db, 'routing', () => routing.wake());
  }

  port(): number {
    return this.#parts.dataPlane.port();
  }

  tlsPort(): number | null {
    return this.#parts.dataPlane.tlsPort();
  }

  async stop(): Promise<void> {
    this.#unsubscribe?.();
    await Promise.all(this.#loops.map((loop) => loop.stop()));
    await this.#parts.dataPlane.stop(drainMs);
    await this.#store().catch((error) => this.#parts.log.warn({ err: error }, 'measurements not stored'));
  }

  async #refresh(): Promise<void> {
    const { db, dataPlane, domain } = this.#parts;
    const version = await readRoutingVersion(db);
    if (version === this.#version) return;
    dataPlane.apply(await loadRoutingTable(db, domain));
    this.#version = version;
  }

  async #store(): Promise<void> {
    const { db, dataPlane, clock, retention, id } = this.#parts;
    const measurements = dataPlane.takeMeasurements();
    this.#parts.onMeasured?.(measurements);
    await storeMeasurements(db, id, measurements);
    const nowMs = clock.now();
    if (nowMs - this.#forgotAt < forgetEveryMs) return;
    this.#forgotAt = nowMs;
    await deleteTrafficBefore(db, (await retention.now()) - keptForMs);
  }
}

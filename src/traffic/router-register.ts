// Writes to the database which version each router of a data plane has in force, and that it is alive.
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import type { Loop, Loops } from '../lib/loops.ts';
import { publish } from '../signals/signals.ts';
import type { DataPlane, RouterState } from './data-plane.ts';

interface RegisterParts {
  db: Db;
  clock: Clock;
  log: Log;
  loops: Loops;
  dataPlane: DataPlane;
  /** A router whose beat stands still for this long holds up nothing any more. */
  leaseMs: number;
}

/** A router that joins while the database does not answer starts all the same: it may be the only one. */
const joinWithinMs = 2000;

export class RouterRegister {
  readonly #parts: RegisterParts;
  readonly #left = new Set<string>();
  /** The versions that are in the database, as text. */
  #written = '';
  #loop: Loop | null = null;
  #writtenAt: number;
  #leaseEnded = false;

  constructor(parts: RegisterParts) {
    this.#parts = parts;
    this.#writtenAt = parts.clock.now();
  }

  start(): void {
    const { loops, leaseMs } = this.#parts;
    this.#loop = loops.start({ name: 'router leases', intervalMs: leaseMs / 6, step: () => this.#renew() });
  }

  async stop(): Promise<void> {
    await this.#loop?.stop();
    await this.#write().catch((error) => this.#parts.log.warn({ err: error }, 'a router left without saying so'));
  }

  async joining(router: RouterState): Promise<void> {
    const { db, log } = this.#parts;
    const written = writeRouters(db, [router]).catch((error) =>
      log.warn({ err: error, router: router.id }, 'a router joined without saying so'),
    );
    await Promise.race([written, new Promise((resolve) => setTimeout(resolve, joinWithinMs).unref())]);
  }

  moved(): void {
    this.#loop?.wake();
  }

  left(id: string): void {
    this.#left.add(id);
    this.#loop?.wake();
  }

  async #renew(): Promise<void> {
    try {
      await this.#write();
    } catch (error) {
      this.#parts.log.warn({ err: error }, 'what the routers have in force was not written');
      this.#noticeEndOfLease();
    }
  }

  async #write(): Promise<void> {
    const { db, dataPlane, clock, log } = this.#parts;
    const nowMs = clock.now();
    const gone = [...this.#left];
    if (gone.length > 0) await db.deleteFrom('router').where('id', 'in', gone).execute();
    for (const id of gone) this.#left.delete(id);
    const routers = dataPlane.routers().filter(({ id }) => !gone.includes(id));
    await writeRouters(db, routers);
    this.#writtenAt = nowMs;
    const written = JSON.stringify(routers);
    if (written !== this.#written) publish(db, 'routers', null);
    this.#written = written;
    if (this.#leaseEnded) log.info('the leases of the routers here are renewed');
    this.#leaseEnded = false;
  }

  /** The routers go on with the table they have, but other processes stop instances without waiting for them. */
  #noticeEndOfLease(): void {
    const { clock, leaseMs, log } = this.#parts;
    if (this.#leaseEnded || clock.now() - this.#writtenAt < leaseMs) return;
    this.#leaseEnded = true;
    log.error('the leases of the routers here have ended: instances that they send requests to may be stopped');
  }
}

/** For the only process on a database: routers that ran within earlier ones have ended with them. */
export async function deleteEndedRouters(db: Db): Promise<void> {
  await db.deleteFrom('router').where('id', 'like', 'run%').execute();
}

async function writeRouters(db: Db, routers: RouterState[]): Promise<void> {
  if (routers.length === 0) return;
  await db
    .insertInto('router')
    .values(routers.map(({ id, version }) => ({ id, version, beat: 1 })))
    .onConflict((conflict) =>
      conflict.column('id').doUpdateSet((e) => ({
        version: e.ref('excluded.version'),
        beat: e('router.beat', '+', 1),
      })),
    )
    .execute();
}

// Keeps a data plane up to date with the database, and the database with what the data plane measured and has in force.
import { randomBytes } from 'node:crypto';
import type { Db } from '../db/database.ts';
import type { RetentionClock } from '../db/retention-clock.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import type { Loop, Loops } from '../lib/loops.ts';
import type { Seal } from '../lib/seal.ts';
import { subscribe } from '../signals/signals.ts';
import type { DataPlane, RouterPorts } from './data-plane.ts';
import { forgetDeleted, loadAll, loadChanges } from './load-routes.ts';
import type { Measurement } from './measurements.ts';
import { RouterRegister } from './router-register.ts';
import { deleteTrafficBefore, keptForMs, readRoutingState, storeMeasurements } from './traffic-queries.ts';

interface RouterAgentParts {
  db: Db;
  seal: Seal;
  clock: Clock;
  retention: RetentionClock;
  log: Log;
  loops: Loops;
  dataPlane: DataPlane;
  domain: string;
  leaseMs: number;
  /** What a router saw, once it is stored. */
  onMeasured?(router: string, measurements: Measurement[]): void;
}

/** The safety net: a change whose signal got lost is noticed within this time. */
const pollMs = 1000;
/** How old what rollouts and alerts know of the traffic is at most. */
const storeEveryMs = 500;
const drainMs = 10_000;
const catchUpWithinMs = 2000;
const ticketKeyEveryMs = 60_000;
const forgetEveryMs = 3600_000;

export class RouterAgent {
  readonly #parts: RouterAgentParts;
  readonly #register: RouterRegister;
  /** The version that the data plane was given last; null: none, or it is behind what can be given as changes. */
  #version: number | null = null;
  #refreshing: Promise<void> = Promise.resolve();
  #forgotAt: { ms: number; version: number } | null = null;
  #loops: Loop[] = [];
  #unsubscribe: (() => void)[] = [];

  constructor(parts: RouterAgentParts) {
    this.#parts = parts;
    this.#register = new RouterRegister(parts);
    parts.dataPlane.observe({
      joining: (router) => this.#register.joining(router),
      catchUp: () => this.#catchUp(),
      moved: () => this.#register.moved(),
      left: (id) => this.#register.left(id),
    });
  }

  /** Accepts requests once the table is loaded. */
  async listen(): Promise<RouterPorts> {
    await this.#refresh();
    return this.#parts.dataPlane.listen();
  }

  start(): void {
    const { db, loops, dataPlane } = this.#parts;
    const every = (intervalMs: number, name: string, step: () => Promise<void>) =>
      loops.start({ name, intervalMs, step });
    const ticketKeys = new TicketKeys(this.#parts);
    const routing = every(pollMs, 'routing', () => this.#refresh());
    this.#loops = [
      routing,
      every(storeEveryMs, 'measurements', () => this.#store()),
      every(ticketKeyEveryMs, 'ticket keys', async () => dataPlane.setTicketKey(await ticketKeys.current())),
    ];
    this.#register.start();
    this.#unsubscribe = [
      subscribe(db, 'routing', () => routing.wake()),
      subscribe(db, 'domains', (domains) =>
        dataPlane.expireCertificates(domains.length === 0 ? null : domains.map(({ hostname }) => hostname)),
      ),
    ];
  }

  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    await Promise.all(this.#loops.map((loop) => loop.stop()));
    await this.#parts.dataPlane.stop(drainMs);
    await this.#store().catch((error) => this.#parts.log.warn({ err: error }, 'measurements not stored'));
    await this.#register.stop();
  }

  /** A router that joins while the database does not answer starts with the table there is. */
  async #catchUp(): Promise<void> {
    const refreshed = this.#refresh().catch((error) => {
      this.#parts.log.warn({ err: error }, 'a router starts with a table that may be old');
    });
    await Promise.race([refreshed, new Promise((resolve) => setTimeout(resolve, catchUpWithinMs).unref())]);
  }

  /** One at a time: each goes on from where the one before it ended. */
  #refresh(): Promise<void> {
    this.#refreshing = this.#refreshing.catch(() => {}).then(() => this.#readTable());
    return this.#refreshing;
  }

  async #readTable(): Promise<void> {
    const { db, dataPlane, domain } = this.#parts;
    const { version, floor } = await readRoutingState(db);
    // A lower version than before: the database was restored to what it was at an earlier time.
    if (this.#version === null || this.#version < floor || this.#version > version) {
      await dataPlane.load(version, loadAll(db, domain));
      this.#version = version;
      return;
    }
    while (this.#version < version) {
      const changes = await loadChanges(db, domain, this.#version);
      // A change of a project without environments is a version without rows.
      const reached = changes.environments.length === 0 ? version : changes.version;
      dataPlane.change(reached, changes.environments);
      this.#version = reached;
    }
  }

  async #store(): Promise<void> {
    const { db, dataPlane } = this.#parts;
    for (let batches = dataPlane.takeMeasurements(); batches.length > 0; batches = dataPlane.takeMeasurements()) {
      const stored = await Promise.allSettled(
        batches.map(async ({ router, measurements, settle }) => {
          const isStored = storeMeasurements(db, router, measurements);
          await isStored.then(
            () => settle(true),
            () => settle(false),
          );
          await isStored;
          this.#parts.onMeasured?.(router, measurements);
        }),
      );
      for (const one of stored) if (one.status === 'rejected') throw one.reason;
    }
    await this.#forget();
  }

  async #forget(): Promise<void> {
    const { db, clock, retention } = this.#parts;
    const nowMs = clock.now();
    if (this.#forgotAt && Math.abs(nowMs - this.#forgotAt.ms) < forgetEveryMs) return;
    // Some at a time: what was measured meanwhile is stored in between.
    if (await deleteTrafficBefore(db, (await retention.now()) - keptForMs)) return;
    if (this.#forgotAt) await forgetDeleted(db, this.#forgotAt.version);
    this.#forgotAt = { ms: nowMs, version: this.#version ?? 0 };
  }
}

const ticketKeyName = 'ticket_key';
const ticketKeyContext = 'tls ticket key';
const ticketKeyLastsMs = 24 * 3600_000;

interface TicketKey {
  key: string;
  createdAt: number;
}

/**
 * The key that TLS session tickets are encrypted with. All routers of an installation share it through the database,
 * so that a session resumes at any of them, and after any restart. It is replaced every day, which limits what a
 * leaked key exposes.
 */
class TicketKeys {
  readonly #parts: { db: Db; seal: Seal; clock: Clock };

  constructor(parts: { db: Db; seal: Seal; clock: Clock }) {
    this.#parts = parts;
  }

  async current(): Promise<Buffer> {
    const { db, seal, clock } = this.#parts;
    const nowMs = clock.now();
    const row = await this.#read();
    const known = row && (JSON.parse(seal.open(row.value, ticketKeyContext)) as TicketKey);
    if (known && Math.abs(nowMs - known.createdAt) < ticketKeyLastsMs) return Buffer.from(known.key, 'base64');
    const created: TicketKey = { key: randomBytes(48).toString('base64'), createdAt: nowMs };
    const value = seal.seal(JSON.stringify(created), ticketKeyContext);
    // Of several processes that replace it at once, one succeeds, and all use what that one wrote.
    if (row)
      await db
        .updateTable('meta')
        .set({ value })
        .where('name', '=', ticketKeyName)
        .where('value', '=', row.value)
        .execute();
    else
      await db
        .insertInto('meta')
        .values({ name: ticketKeyName, value })
        .onConflict((c) => c.column('name').doNothing())
        .execute();
    const written = JSON.parse(seal.open((await this.#read())!.value, ticketKeyContext)) as TicketKey;
    return Buffer.from(written.key, 'base64');
  }

  #read(): Promise<{ value: string } | undefined> {
    return this.#parts.db.selectFrom('meta').select('value').where('name', '=', ticketKeyName).executeTakeFirst();
  }
}

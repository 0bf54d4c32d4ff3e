// Whether this router reaches the instances of each region. Instances are healthy where their region is; a router elsewhere,
// or behind a network policy, may not get there, and its visitors get 502. No other process can see that.
import { connect } from 'node:net';
import type { Db } from '../db/database.ts';
import type { Log } from '../lib/log.ts';
import type { Loop, Loops } from '../lib/loops.ts';

const checkEveryMs = 10_000;
/** One failure may be an instance that ended at this moment. */
const reportAfter = 2;
/** While one is out of reach. */
const againMs = 1000;
const connectMs = 2000;
const asked = 3;

interface ReachParts {
  db: Db;
  log: Log;
  loops: Loops;
  regions: string[];
}

interface Address {
  host: string;
  port: number;
}

export class RegionReach {
  readonly #parts: ReachParts;
  /** By region: how many checks in a row have failed, and why the last one did. */
  readonly #failed = new Map<string, { times: number; reason: string }>();
  #loop: Loop | null = null;

  constructor(parts: ReachParts) {
    this.#parts = parts;
  }

  start(): void {
    const step = () => this.#checkAll();
    this.#loop = this.#parts.loops.start({ name: 'reach of regions', intervalMs: checkEveryMs, step });
  }

  async stop(): Promise<void> {
    await this.#loop?.stop();
  }

  /** A line for each region that cannot be reached. */
  lines(): string[] {
    return [...this.#failed]
      .filter(([, { times }]) => times >= reportAfter)
      .map(([region, { reason }]) => `region ${region}: this router reaches none of its instances (${reason})`);
  }

  async #checkAll(): Promise<void> {
    const { regions } = this.#parts;
    const reached = await Promise.all(regions.map((region) => this.#check(region)));
    if (reached.includes(false)) setTimeout(() => this.#loop?.wake(), againMs).unref();
  }

  async #check(region: string): Promise<boolean> {
    const { db, log } = this.#parts;
    const reason = await whyUnreachable(await listNewest(db, region));
    const before = this.#failed.get(region)?.times ?? 0;
    if (reason === null) {
      this.#failed.delete(region);
      if (before >= reportAfter) log.info({ region }, 'this router reaches the instances of a region again');
      return true;
    }
    this.#failed.set(region, { times: before + 1, reason });
    if (before + 1 === reportAfter)
      log.error({ region, reason }, 'this router reaches none of the instances of a region: their visitors get 502');
    return false;
  }
}

async function listNewest(db: Db, region: string): Promise<Address[]> {
  const rows = await db
    .selectFrom('instance')
    .select(['host', 'port'])
    .where('region', '=', region)
    .where('state', '=', 'healthy')
    .where('host', 'is not', null)
    .orderBy('id', 'desc')
    .limit(asked)
    .execute();
  return rows.map(({ host, port }) => ({ host: host!, port: port! }));
}

/** null: one can be reached, or there is none to reach. */
async function whyUnreachable(addresses: Address[]): Promise<string | null> {
  const faults = await Promise.all(addresses.map(faultOf));
  return faults.includes(null) ? null : (faults[0] ?? null);
}

function faultOf({ host, port }: Address): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const socket = connect({ host, port });
  socket.setTimeout(connectMs, () => resolve(`${host}:${port} does not answer`));
  socket.once('connect', () => resolve(null));
  socket.once('error', (error) => resolve(error.message));
  return promise.finally(() => socket.destroy());
}

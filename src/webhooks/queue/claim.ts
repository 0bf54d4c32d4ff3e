// Taking deliveries to send. A claim is a lease: until it runs out nobody else takes the delivery, and only who holds it
// can say how it went. On PostgreSQL several processes claim at once, each skipping what another is about to take.
import { sql } from 'kysely';
import type { DeliveryType } from '../../contract/deliveries.ts';
import type { Ordering } from '../../contract/webhooks.ts';
import type { Db } from '../../db/database.ts';
import type { DialectName } from '../../db/migrations/types.ts';
import type { Load } from '../endpoints/health.ts';
import { claimAtOnce } from './claim-postgres.ts';
import { claimOneByOne } from './claim-sqlite.ts';
import { jsonRows } from './json-rows.ts';

/** Where a delivery goes, as that was the moment it was taken. */
export interface Receiver {
  url: string;
  ordering: Ordering;
  secret_sealed: string;
  old_secret_sealed: string | null;
  old_secret_until: number | null;
  /** One after the other, since the last success. */
  failures: number;
}

export interface Claimed extends Receiver {
  id: string;
  webhook_id: string;
  event_id: string;
  type: DeliveryType;
  attempts: number;
  tried: number;
  lease: string;
  body: string | null;
}

export interface Wanted {
  /** What this process has under way, by endpoint. */
  loads: ReadonlyMap<string, Load>;
  /** At most so many in all. */
  limit: number;
  /** Endpoints after this one come first. */
  after: string;
  lease: string;
  nowMs: number;
  untilMs: number;
}

export const claimDeliveries = (db: Db, dialect: DialectName, wanted: Wanted): Promise<Claimed[]> =>
  dialect === 'postgres' ? claimAtOnce(db, wanted) : claimOneByOne(db, wanted);

/** Not sent after all: due again at once, as if it had never been taken. */
export async function releaseDeliveries(db: Db, dialect: DialectName, claimed: Claimed[]): Promise<void> {
  if (claimed.length === 0) return;
  const rows = jsonRows(dialect, JSON.stringify(claimed.map(({ id, lease }) => ({ id, lease }))), {
    id: 'text',
    lease: 'text',
  });
  await sql`update delivery as d set lease = null, lease_until = 0
    from ${rows} where d.id = r.id and d.lease = r.lease and d.state = 'pending'`.execute(db);
}

/** After a crash, where there is only one process: what it was sending is nobody's. */
export async function releaseAll(db: Db): Promise<void> {
  await sql`update delivery set lease = null, lease_until = 0 where state = 'pending' and lease is not null`.execute(
    db,
  );
}

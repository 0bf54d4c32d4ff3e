// The queue of deliveries as the dispatcher sees it. There is one implementation for each database; which one is used
// is decided here and nowhere else. `test/both-databases/webhooks/queue.test.ts` says what both have to do.
import type { Db } from '../../db/database.ts';
import type { DeliveryQueue } from './claim.ts';
import { sqliteQueue } from './sqlite.ts';

interface QueueOptions {
  db: Db;
  /** null: SQLite. */
  databaseUrl: string | null;
  onConnectionLost(error: Error): void;
}

export async function openQueue({ db, databaseUrl, onConnectionLost }: QueueOptions): Promise<DeliveryQueue> {
  if (databaseUrl === null) return sqliteQueue(db);
  // Loaded only where it is used: a start on SQLite does not wait for the PostgreSQL driver.
  const { postgresQueue } = await import('./postgres.ts');
  return postgresQueue(databaseUrl, onConnectionLost);
}

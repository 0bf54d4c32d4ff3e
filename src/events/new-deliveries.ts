// Every delivery is inserted here, whether an event, a test or a replay causes it: the columns of its row and their
// initial values.
import { CompiledQuery } from 'kysely';
import type { DeliveryType } from '../contract/deliveries.ts';
import { type Db, dialectOf } from '../db/database.ts';
import { postgresRows, sqliteRows } from '../db/prepared.ts';
import type { Tables } from '../db/tables.ts';

export interface NewDelivery {
  id: string;
  webhook_id: string;
  event_id: string;
  type: DeliveryType;
  /** What a test sends; anything else sends the body of its event. */
  test_body?: string;
  /** Its position in a strict order; 0: none. */
  position: number;
  created_at: number;
  /** When it is sent; by the clock that lasts. */
  due_at: number;
}

const fields = {
  id: 'text',
  webhook_id: 'text',
  event_id: 'text',
  type: 'text',
  test_body: 'text',
  position: 'bigint',
  created_at: 'bigint',
  due_at: 'bigint',
} as const satisfies Record<keyof NewDelivery, 'text' | 'bigint'>;

/** Not tried yet. */
const firstValues: Record<keyof Tables['delivery'], string> = {
  id: 'r.id',
  webhook_id: 'r.webhook_id',
  event_id: 'r.event_id',
  type: 'r.type',
  test_body: 'r.test_body',
  state: "'pending'",
  position: 'r.position',
  due_at: 'r.due_at',
  lease: 'null',
  lease_until: '0',
  attempts: '0',
  tried: '0',
  created_at: 'r.created_at',
  finished_at: 'null',
};

const columns = Object.keys(firstValues).join(', ');
const values = Object.values(firstValues).join(', ');
const insertFrom = (rows: string): string => `insert into delivery (${columns}) select ${values} from ${rows}`;

/**
 * Inserts the deliveries in a JSON array of `NewDelivery`, as part of a larger statement that has it as `parameter`.
 */
export const insertDeliveriesInPostgres = (parameter: string): string => insertFrom(postgresRows(parameter, fields));

/** Two requests may replay the same events at the same time. */
const unlessThere = 'where true on conflict (webhook_id, event_id) do nothing';
const statements = {
  sqlite: `${insertFrom(sqliteRows(fields))} ${unlessThere}`,
  postgres: `${insertDeliveriesInPostgres('$1')} ${unlessThere}`,
};

/** Where a webhook already has a delivery of the event, that one stays as it is. */
export async function insertDeliveries(db: Db, deliveries: NewDelivery[]): Promise<void> {
  if (deliveries.length === 0) return;
  await db.executeQuery(CompiledQuery.raw(statements[dialectOf(db)], [JSON.stringify(deliveries)]));
}

// What the tests of deployments read besides the API.
import assert from 'node:assert/strict';
import type { Db } from '../../../src/db/database.ts';
import type { Shop } from '../../helpers/shop.ts';

export const image = (tag: number | string) => `registry.example/shop:${tag}`;

/** The project's events in order, without those of alerts: a revision that fails may fire one at any time. */
export async function eventsOf(db: Db, shop: Shop) {
  const rows = await db
    .selectFrom('event')
    .select(['type', 'sequence', 'body'])
    .where('project_id', '=', shop.project)
    .orderBy('sequence')
    .execute();
  assert.deepEqual(
    rows.map((row) => row.sequence),
    rows.map((_, index) => index + 1),
    'sequence has no gap',
  );
  return rows
    .filter((row) => !row.type.startsWith('alert.'))
    .map((row) => ({ type: row.type, data: JSON.parse(row.body).data }));
}

export const instancesOf = (db: Db, shop: Shop) =>
  db
    .selectFrom('instance')
    .select(['id', 'state', 'revision', 'host', 'port'])
    .where('project_id', '=', shop.project)
    .execute();

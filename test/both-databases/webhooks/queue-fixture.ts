// A delivery queue on a database of its own, and what its tests put in and look at. Time is a number: nothing sends,
// nothing sleeps.
import { after, before, beforeEach } from 'node:test';
import { readConfig } from '../../../src/config.ts';
import type { Db } from '../../../src/db/database.ts';
import type { Tables } from '../../../src/db/tables.ts';
import { insertDeliveries, type NewDelivery } from '../../../src/events/new-deliveries.ts';
import { createIds } from '../../../src/lib/ids.ts';
import { openStore, type Store } from '../../../src/store.ts';
import type { Claimed, ClaimRequest, DeliveryQueue, Outcome } from '../../../src/webhooks/delivery-queue.ts';
import { openQueue } from '../../../src/webhooks/delivery-worker.ts';
import { insertWebhook } from '../../../src/webhooks/webhook-queries.ts';
import { isolatedEnv } from '../../helpers/app.ts';

export const startMs = Date.parse('2026-01-01T00:00:00Z');
export const leaseMs = 30_000;
export const ids = createIds({ now: () => startMs });

let store: Store;
export let queue: DeliveryQueue;
export let db: Db;

/** Opened before the tests of a file, emptied before each of them. */
export function setUpQueue(): void {
  let isolated: Awaited<ReturnType<typeof isolatedEnv>>;
  before(async () => {
    isolated = await isolatedEnv();
    const config = readConfig(isolated.env, false);
    store = await openStore(config, () => {});
    db = store.db;
    queue = await openQueue({ db, databaseUrl: config.databaseUrl, onConnectionLost: () => {} });
  });
  beforeEach(async () => {
    for (const table of ['attempt', 'delivery', 'webhook', 'event'] as const) await db.deleteFrom(table).execute();
  });
  after(async () => {
    await queue.close();
    await store.close();
    await isolated.clean();
  });
}

export async function newWebhook(more: Partial<Tables['webhook']> = {}): Promise<string> {
  const id = ids('whk');
  await insertWebhook(db, {
    id,
    account_id: 'acc',
    project_id: null,
    url: `http://receiver.example/${id}`,
    events: '["*"]',
    description: null,
    ordering: 'none',
    state: 'enabled',
    disabled_reason: null,
    secret_sealed: 'sealed',
    old_secret_sealed: null,
    old_secret_until: null,
    next_position: 1,
    failures: 0,
    failing_since: null,
    probe_at: null,
    created_at: startMs,
    updated_at: startMs,
    version: 1,
    ...more,
  });
  return id;
}

/** Deliveries of tests, for these need no events. Gives their ids. */
export async function newDeliveries(
  webhookId: string,
  count: number,
  more: Partial<NewDelivery> = {},
): Promise<string[]> {
  const rows = Array.from({ length: count }, (_, n) => ({
    id: ids('dlv'),
    webhook_id: webhookId,
    event_id: ids('evt'),
    type: 'webhook.test' as const,
    test_body: '{}',
    position: n + 1,
    created_at: startMs,
    due_at: more.created_at ?? startMs,
    ...more,
  }));
  await insertDeliveries(db, rows);
  return rows.map(({ id }) => id);
}

let claims = 0;
export const claim = (nowMs = startMs, more: Partial<ClaimRequest> = {}) =>
  queue.claim({
    loads: new Map(),
    most: 2000,
    atOnce: 2000,
    accounts: new Map(),
    lease: `lease ${++claims}`,
    nowMs,
    untilMs: nowMs + leaseMs,
    ...more,
  });

export const idsOf = (claimed: Claimed[]) => claimed.map(({ id }) => id).sort();

export function outcomeOf({ id, webhook_id, lease, attempts, tried }: Claimed, more: Partial<Outcome> = {}): Outcome {
  const attempt = { number: attempts + 1, at: startMs, duration_ms: 5, status: 200, error: null, answer: 'ok' };
  const delivery = { state: 'succeeded' as const, tried: tried + 1, due_at: startMs, finished_at: startMs };
  return { id, webhook_id, lease, ...attempt, ...delivery, ...more };
}

export const retryAt = (dueAt: number) => ({
  state: 'pending' as const,
  status: 500,
  due_at: dueAt,
  finished_at: null,
});

export const find = (id: string) =>
  db.selectFrom('delivery').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
export const attemptsOf = (id: string) =>
  db.selectFrom('attempt').selectAll().where('delivery_id', '=', id).orderBy('number').execute();
export const statesOf = async (webhookId: string) => {
  const query = db.selectFrom('delivery').select('state').where('webhook_id', '=', webhookId);
  return (await query.execute()).map(({ state }) => state);
};

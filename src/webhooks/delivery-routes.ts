import * as contract from '../contract/deliveries.ts';
import { ApiError } from '../contract/errors.ts';
import type { Db } from '../db/database.ts';
import { insertDeliveries } from '../events/new-deliveries.ts';
import { type ServedRoute, serve } from '../http/api/served-route.ts';
import { type Clock, deadlineOf } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import { isoTime } from '../lib/iso-time.ts';
import { publish } from '../signals/signals.ts';
import {
  type DeliveryRow,
  listAttempts,
  listDeliveries,
  listUndelivered,
  markDeliveryDue,
  markFailedDue,
  presentDelivery,
  presentDetail,
  requireDelivery,
} from './delivery-queries.ts';
import { requireWebhook, type WebhookRow } from './webhook-queries.ts';

/** How many deliveries one replay may schedule: what one transaction takes without slowing down other requests. */
const maxReplayed = 1000;

interface DeliveryRouteParts {
  ids: IdSource;
  clock: Clock;
}

export function deliveryRoutes({ ids, clock }: DeliveryRouteParts): ServedRoute[] {
  return [
    serve(contract.testWebhook, async (call, tx) => {
      const webhook = await requireWebhook(tx, call.caller, call.params.whk);
      refuseUnless(['enabled'], webhook);
      const row = await insertTest(tx, webhook, ids, clock);
      publish(tx, 'deliveries', null);
      return { body: presentDelivery(row), location: `/webhooks/${webhook.id}/deliveries/${row.id}` };
    }),

    serve(contract.replayWebhook, async (call, tx) => {
      const webhook = await requireWebhook(tx, call.caller, call.params.whk);
      refuseUnless(['enabled', 'paused'], webhook);
      const sinceMs = Date.parse(call.body.since);
      let scheduled = await markFailedDue(tx, webhook.id, sinceMs, deadlineOf(clock).now(), maxReplayed);
      let hasMore = scheduled === maxReplayed;
      if (call.body.only === 'missing' && !hasMore) {
        const room = maxReplayed - scheduled;
        const events = await listUndelivered(tx, webhook, sinceMs, room + 1);
        hasMore = events.length > room;
        scheduled += await insertMissing(tx, webhook, events.slice(0, room), ids, clock);
      }
      publish(tx, 'deliveries', null);
      return { body: { scheduled, has_more: hasMore } };
    }),

    serve(contract.listDeliveries, async (call, db) => {
      const webhook = await requireWebhook(db, call.caller, call.params.whk);
      const rows = await listDeliveries(db, webhook.id, call.query.state, call.page);
      return { body: call.paginate(rows, (row) => row.id, presentDelivery) };
    }),

    serve(contract.getDelivery, async (call, db) => {
      const webhook = await requireWebhook(db, call.caller, call.params.whk);
      const row = await requireDelivery(db, webhook.id, call.params.dlv);
      return { body: presentDetail(row, await listAttempts(db, row.id)) };
    }),

    serve(contract.redeliver, async (call, tx) => {
      const webhook = await requireWebhook(tx, call.caller, call.params.whk);
      const row = await requireDelivery(tx, webhook.id, call.params.dlv);
      refuseUnless(['enabled', 'paused'], webhook);
      const due = await markDeliveryDue(tx, row, deadlineOf(clock).now());
      publish(tx, 'deliveries', null);
      return { body: presentDelivery(due) };
    }),
  ];
}

/** A test looks like an event, but no event is stored. */
async function insertTest(tx: Db, webhook: WebhookRow, ids: IdSource, clock: Clock): Promise<DeliveryRow> {
  const nowMs = clock.now();
  const event = {
    id: ids('evt'),
    type: contract.testType,
    created_at: isoTime(nowMs),
    project_id: webhook.project_id,
    sequence: 0,
    data: { webhook_id: webhook.id, message: 'A test event, requested through the API.' },
  };
  const id = ids('dlv');
  await insertDeliveries(tx, [
    {
      id,
      webhook_id: webhook.id,
      event_id: event.id,
      type: contract.testType,
      test_body: JSON.stringify(event),
      position: 0,
      created_at: nowMs,
      due_at: deadlineOf(clock).now(),
    },
  ]);
  return requireDelivery(tx, webhook.id, id);
}

async function insertMissing(
  tx: Db,
  webhook: WebhookRow,
  events: Awaited<ReturnType<typeof listUndelivered>>,
  ids: IdSource,
  clock: Clock,
): Promise<number> {
  const times = { created_at: clock.now(), due_at: deadlineOf(clock).now() };
  const rest = { webhook_id: webhook.id, position: 0, ...times };
  const missing = events.map(({ id, type }) => ({ id: ids('dlv'), event_id: id, type, ...rest }));
  await insertDeliveries(tx, missing);
  return missing.length;
}

function refuseUnless(states: string[], { state }: WebhookRow): void {
  if (states.includes(state)) return;
  throw new ApiError('webhook_not_enabled', `The webhook is ${state}.`, {
    details: [{ path: 'state', message: state }],
  });
}

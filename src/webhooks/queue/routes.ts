import * as contract from '../../contract/deliveries.ts';
import { ApiError } from '../../contract/errors.ts';
import type { DialectName } from '../../db/migrations/types.ts';
import { type ServedRoute, serve } from '../../http/api/route.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IdSource } from '../../lib/ids.ts';
import { isoTime } from '../../lib/iso-time.ts';
import { requireWebhook, type WebhookRow } from '../endpoints/queries.ts';
import {
  type DeliveryRow,
  insertDeliveries,
  insertDelivery,
  listAttempts,
  listDeliveries,
  listUndelivered,
  markDeliveryDue,
  markFailedDue,
  presentDelivery,
  presentDetail,
  requireDelivery,
} from './deliveries.ts';

/** Of one replay: what one transaction takes without anyone noticing. */
const maxReplayed = 10_000;

export interface DeliveryRouteParts {
  ids: IdSource;
  clock: Clock;
  dialect: DialectName;
  /** There may be something to send. */
  wake(): void;
}

export function deliveryRoutes({ ids, clock, dialect, wake }: DeliveryRouteParts): ServedRoute[] {
  return [
    serve(contract.testWebhook, async (call, tx) => {
      const webhook = await requireWebhook(tx, call.caller, call.params.whk);
      refuseUnless(['enabled'], webhook);
      const nowMs = clock.now();
      const eventId = ids('evt');
      const test = {
        id: eventId,
        type: contract.testType,
        created_at: isoTime(nowMs),
        project_id: webhook.project_id,
        sequence: 0,
        data: { webhook_id: webhook.id, message: 'A test, asked for by somebody who may change this webhook.' },
      };
      const row: DeliveryRow = {
        id: ids('dlv'),
        webhook_id: webhook.id,
        event_id: eventId,
        type: contract.testType,
        test_body: JSON.stringify(test),
        state: 'pending',
        position: 0,
        due_at: nowMs,
        lease: null,
        lease_until: 0,
        attempts: 0,
        tried: 0,
        created_at: nowMs,
        finished_at: null,
      };
      await insertDelivery(tx, row);
      call.afterCommit(wake);
      return { body: presentDelivery(row), location: `/webhooks/${webhook.id}/deliveries/${row.id}` };
    }),

    serve(contract.replayWebhook, async (call, tx) => {
      const webhook = await requireWebhook(tx, call.caller, call.params.whk);
      refuseUnless(['enabled', 'paused'], webhook);
      const sinceMs = Date.parse(call.body.since);
      const nowMs = clock.now();
      let scheduled = await markFailedDue(tx, webhook.id, sinceMs, nowMs, maxReplayed);
      let hasMore = scheduled === maxReplayed;
      if (call.body.only === 'missing' && !hasMore) {
        const room = maxReplayed - scheduled;
        const events = await listUndelivered(tx, webhook, sinceMs, room + 1);
        hasMore = events.length > room;
        const fresh = events.slice(0, room).map(({ id, type }) => ({ id: ids('dlv'), event_id: id, type }));
        await insertDeliveries(tx, dialect, webhook.id, fresh, nowMs);
        scheduled += fresh.length;
      }
      call.afterCommit(wake);
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
      const due = await markDeliveryDue(tx, row, clock.now());
      call.afterCommit(wake);
      return { body: presentDelivery(due) };
    }),
  ];
}

function refuseUnless(states: string[], { state }: WebhookRow): void {
  if (states.includes(state)) return;
  throw new ApiError('webhook_not_enabled', `The webhook is ${state}.`, {
    details: [{ path: 'state', message: state }],
  });
}

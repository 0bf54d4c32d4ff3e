import type { Db } from '../../db/database.ts';
import { changesOne } from '../../db/guarded.ts';
import { type Health, hasFailedTooLong, healthAfter, type Round } from './health.ts';

export interface HealthChange extends Round {
  webhookId: string;
  /** It answered 410: it wants no more deliveries. */
  gone: boolean;
}

/** Gives the ids of the webhooks that this disabled. */
export async function markHealth(db: Db, changes: HealthChange[], nowMs: number, random: number): Promise<string[]> {
  const disabled: string[] = [];
  for (const change of changes) {
    const isDisabled = await db.transaction().execute((tx) => markOne(tx, change, nowMs, random));
    if (isDisabled) disabled.push(change.webhookId);
  }
  return disabled;
}

/** Gives whether this disabled the webhook. One that is not enabled is left alone. */
async function markOne(tx: Db, { webhookId, gone, ...round }: HealthChange, nowMs: number, random: number) {
  const row = await tx
    .selectFrom('webhook')
    .select(['failures', 'failing_since', 'probe_at'])
    .where('id', '=', webhookId)
    .where('state', '=', 'enabled')
    .executeTakeFirst();
  if (!row) return false;
  const before: Health = { failures: row.failures, failingSince: row.failing_since, probeAt: row.probe_at };
  const after = healthAfter(before, round, nowMs, random);
  const reason = gone ? 'The receiver answered 410 Gone.' : hasFailedTooLong(after, nowMs) ? failedTooLong : null;
  const changed = await changesOne(
    tx
      .updateTable('webhook')
      .set((e) => ({
        failures: after.failures,
        failing_since: after.failingSince,
        probe_at: after.probeAt,
        ...(reason && { state: 'disabled' as const, disabled_reason: reason, version: e('version', '+', 1) }),
      }))
      .where('id', '=', webhookId)
      .where('state', '=', 'enabled'),
  );
  return reason !== null && changed;
}

const failedTooLong = 'No delivery succeeded for five days.';

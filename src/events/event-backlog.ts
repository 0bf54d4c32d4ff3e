// Inserts the deliveries of events that had too many for their own transaction: a slice at a time, one account after
// another, so that neither a request nor another account's deliveries wait for all of them.
import type { Selectable } from 'kysely';
import { type Db, dialectOf } from '../db/database.ts';
import { lockRow } from '../db/guarded.ts';
import type { Tables } from '../db/tables.ts';
import { type Clock, deadlineOf } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import { publish } from '../signals/signals.ts';
import { insertDeliveries, type NewDelivery } from './new-deliveries.ts';
import { includesKind, lockWebhooks, type Subscriber, takePositions } from './outbox.ts';

type BacklogRow = Selectable<Tables['event_backlog']>;
type ProjectKey = Pick<BacklogRow, 'account_id' | 'project_id'>;

/** The budget of one slice: webhooks looked at, and events. */
const webhooksPerSlice = 250;
const eventsPerSlice = 50;

/**
 * Carries on with the account that comes behind `after`. Gives that account, behind which the next slice begins; null:
 * no deliveries are left to insert.
 */
export async function expandBacklog(
  db: Db,
  parts: { ids: IdSource; clock: Clock },
  after: string,
): Promise<string | null> {
  const next = (await findFirst(db, after)) ?? (await findFirst(db, ''));
  if (!next) return null;
  await db.transaction().execute((tx) => expandSlice(tx, parts, next));
  return next.account_id;
}

async function findFirst(db: Db, afterAccount: string) {
  return db
    .selectFrom('event_backlog')
    .select(['account_id', 'project_id'])
    .where('account_id', '>', afterAccount)
    .orderBy('account_id')
    .orderBy('project_id')
    .orderBy('sequence')
    .limit(1)
    .executeTakeFirst();
}

/** Events of the project that are written meanwhile wait for this lock, and then see whether a backlog is left. */
async function expandSlice(tx: Db, parts: { ids: IdSource; clock: Clock }, { account_id, project_id }: ProjectKey) {
  await lockRow(tx, 'project', project_id);
  await lockStrict(tx, { account_id, project_id });
  const rows = await tx
    .selectFrom('event_backlog')
    .selectAll()
    .where('account_id', '=', account_id)
    .where('project_id', '=', project_id)
    .orderBy('sequence')
    .limit(eventsPerSlice)
    .execute();
  const candidatesOf = listedOnce(tx);
  const deliveries: NewDelivery[] = [];
  const expanded: number[] = [];
  let left = webhooksPerSlice;
  for (const row of rows) {
    const candidates = (await candidatesOf(row)).slice(0, left);
    const subscribers = candidates.filter(
      (one) => (one.project_id === null || one.project_id === project_id) && includesKind(one.events, row.type),
    );
    deliveries.push(...(await deliveriesOf(tx, parts, row, subscribers)));
    if (candidates.length === left) {
      await markExpanded(tx, row, candidates.at(-1)!.id);
      break;
    }
    expanded.push(row.sequence);
    left -= candidates.length;
  }
  await insertDeliveries(tx, deliveries);
  await deleteBacklog(tx, { account_id, project_id }, expanded);
  const project = await tx
    .updateTable('project')
    .set((e) => ({ backlog: e('backlog', '-', expanded.length) }))
    .where('id', '=', project_id)
    .returning(['backlog', 'deleted_at'])
    .executeTakeFirstOrThrow();
  // A deleted project stays until its last events have their deliveries.
  if (project.backlog === 0 && project.deleted_at !== null) publish(tx, 'removals', null);
}

/** All at once and in the order of their ids, as for a new event: two transactions never wait for each other. */
async function lockStrict(tx: Db, { account_id, project_id }: ProjectKey): Promise<void> {
  if (dialectOf(tx) === 'sqlite') return;
  const rows = await tx
    .selectFrom('webhook')
    .select('id')
    .where('account_id', '=', account_id)
    .where('ordering', '=', 'strict')
    .where((e) => e.or([e('project_id', 'is', null), e('project_id', '=', project_id)]))
    .execute();
  if (rows.length > 0)
    await lockWebhooks(
      tx,
      rows.map(({ id }) => id),
    );
}

async function markExpanded(tx: Db, { account_id, project_id, sequence }: BacklogRow, webhookId: string) {
  await tx
    .updateTable('event_backlog')
    .set({ after_webhook: webhookId })
    .where('account_id', '=', account_id)
    .where('project_id', '=', project_id)
    .where('sequence', '=', sequence)
    .execute();
}

async function deleteBacklog(tx: Db, { account_id, project_id }: ProjectKey, sequences: number[]): Promise<void> {
  if (sequences.length === 0) return;
  await tx
    .deleteFrom('event_backlog')
    .where('account_id', '=', account_id)
    .where('project_id', '=', project_id)
    .where('sequence', 'in', sequences)
    .execute();
}

type Candidate = Subscriber & { events: string; project_id: string | null };

/** The webhooks that an event has still to go to, as many as fit into a slice: those of most events are the same. */
function listedOnce(tx: Db): (row: BacklogRow) => Promise<Candidate[]> {
  const listed = new Map<string, Promise<Candidate[]>>();
  return ({ account_id, after_webhook, last_webhook }) => {
    const range = `${after_webhook} ${last_webhook}`;
    const candidates =
      listed.get(range) ??
      tx
        .selectFrom('webhook')
        .select(['id', 'events', 'project_id', 'ordering'])
        .where('account_id', '=', account_id)
        .where('state', 'in', ['enabled', 'paused'])
        .where('id', '>', after_webhook)
        .where('id', '<=', last_webhook)
        .orderBy('id')
        .limit(webhooksPerSlice)
        .execute();
    listed.set(range, candidates);
    return candidates;
  };
}

async function deliveriesOf(
  tx: Db,
  { ids, clock }: { ids: IdSource; clock: Clock },
  { event_id, type }: BacklogRow,
  subscribers: Subscriber[],
): Promise<NewDelivery[]> {
  const positions = await takePositions(tx, subscribers);
  const times = { created_at: clock.now(), due_at: deadlineOf(clock).now() };
  return subscribers.map(({ id: webhook_id }) => ({
    id: ids('dlv'),
    webhook_id,
    event_id,
    type,
    position: positions.get(webhook_id) ?? 0,
    ...times,
  }));
}

// Which webhooks get an event: those of its account, for all projects or for the event's, that subscribed to its kind.
import type { EventKind } from '../contract/events.ts';
import type { Ordering } from '../contract/webhooks.ts';
import type { Db } from '../db/database.ts';
import { prepared } from '../db/prepared.ts';

/** What decides who gets an event. */
export interface EventSubject {
  accountId: string;
  projectId: string;
  type: EventKind;
}

export interface Subscriber {
  id: string;
  ordering: Ordering;
}

/** An event's number in its project, and the webhooks that get the event. */
export interface SequencedSubscribers {
  sequence: number;
  subscribers: Subscriber[];
  /**
   * In the order of their ids: the webhooks with a strict order that may get events of the project, of whatever kind.
   * A transaction locks all of them with its first event, so that no two transactions lock some of them in different
   * orders. Empty on SQLite, which has one writer.
   */
  strict: string[];
}

const selectCandidates = prepared((db) =>
  db
    .selectFrom('webhook')
    .select(['id', 'events', 'project_id', 'ordering'])
    .where('account_id', '=', '')
    .where('state', 'in', ['enabled', 'paused'])
    .orderBy('id'),
);

export async function listSubscribers(tx: Db, { accountId, projectId, type }: EventSubject): Promise<Subscriber[]> {
  const candidates = await selectCandidates(tx, accountId, 'enabled', 'paused');
  return candidates.filter(
    ({ project_id, events }) => (project_id === null || project_id === projectId) && includesKind(events, type),
  );
}

/** `events` is the JSON of a webhook row. */
const includesKind = (events: string, type: EventKind): boolean =>
  events.includes(`"${type}"`) || events.includes('"*"');

/** The conditions of `listSubscribers` on a webhook `w` in SQL: $1 project, $2 account, $3 the kind in double quotes. */
export const mayGetInPostgres = `w.account_id = $2 and w.state in ('enabled', 'paused')
  and (w.project_id is null or w.project_id = $1)`;
export const includesKindInPostgres = `(strpos(w.events, $3) > 0 or strpos(w.events, '"*"') > 0)`;

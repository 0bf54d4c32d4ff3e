import { sql } from 'kysely';
import { ApiError } from '../contract/errors.ts';
import { type AuditEntry, listAuditLog } from '../contract/service.ts';
import type { Db } from '../db/database.ts';
import { searchNewestFirst } from '../db/search.ts';
import { type ApiCall, type ServedRoute, serve } from '../http/api/served-route.ts';
import { idFloor } from '../lib/ids.ts';
import { isoTime } from '../lib/iso-time.ts';

export function auditRoutes(): ServedRoute[] {
  return [
    serve(listAuditLog, async (call, db) => {
      const { rows, searchedTo } = await listEntries(db, call);
      return { body: call.paginate(rows, (row) => row.id, present, searchedTo) };
    }),
  ];
}

const momentMs = 60_000;
const tokenName = sql<string | null>`(select t.name from token t where t.id = audit.token_id)`;
const projectName = sql<string | null>`(select p.name from project p where p.id = audit.project_id)`;

function listEntries(db: Db, { caller, query, page }: ApiCall<typeof listAuditLog>) {
  let entries = db
    .selectFrom('audit')
    .selectAll()
    .select([tokenName.as('token_name'), projectName.as('project_name')])
    .where('account_id', '=', caller.accountId);
  if (caller.projectIds !== null) entries = entries.where('project_id', 'in', [...caller.projectIds, '']);
  if (query.project_id !== undefined) entries = entries.where('project_id', '=', query.project_id);
  if (query.by !== undefined) entries = entries.where('token_id', '=', query.by);
  // Ids sort by time, so a period is a part of the index; the id of a row is made a moment before its time is taken.
  if (query.since !== undefined) {
    const ms = timeOf('since', query.since);
    entries = entries.where('id', '>=', idFloor('aud', Math.max(0, ms - momentMs))).where('created_at', '>=', ms);
  }
  if (query.until !== undefined) {
    const ms = timeOf('until', query.until);
    entries = entries.where('id', '<', idFloor('aud', ms + momentMs)).where('created_at', '<', ms);
  }
  if (query.action !== undefined) {
    const isWhole = query.action.includes('.');
    entries = entries.where('action', isWhole ? '=' : 'like', isWhole ? query.action : `${query.action}.%`);
  }
  const texts = [sql`audit.action`, sql`audit.resource`, tokenName, projectName];
  return searchNewestFirst(entries, query.search, texts, page);
}

function timeOf(name: string, text: string): number {
  const ms = Date.parse(text);
  if (ms >= 0) return ms;
  throw new ApiError('invalid_request', 'The request is not valid.', {
    details: [{ path: `query.${name}`, message: 'must not be before 1970' }],
  });
}

type Row = Awaited<ReturnType<typeof listEntries>>['rows'][number];

const present = ({ account_id, created_at, changes, ...row }: Row): AuditEntry => ({
  ...row,
  changes: changes === null ? [] : JSON.parse(changes),
  created_at: isoTime(created_at),
});

import { type SqlBool, sql } from 'kysely';
import { ApiError } from '../contract/errors.ts';
import { type AuditEntry, listAuditLog } from '../contract/service.ts';
import type { Db } from '../db/database.ts';
import { newestFirst } from '../db/keyset-page.ts';
import { type ApiCall, type ServedRoute, serve } from '../http/api/served-route.ts';
import { idFloor } from '../lib/ids.ts';
import { isoTime } from '../lib/iso-time.ts';

export function auditRoutes(): ServedRoute[] {
  return [
    serve(listAuditLog, async (call, db) => ({
      body: call.paginate(await listEntries(db, call), (row) => row.id, present),
    })),
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
  for (const word of (query.search ?? '').toLowerCase().split(/\s+/).filter(Boolean).slice(0, 10)) {
    const pattern = `%${word.replaceAll(/[\\%_]/g, '\\$&')}%`;
    const like = [sql`audit.action`, sql`audit.resource`, tokenName, projectName].map(
      (text) => sql<SqlBool>`lower(${text}) like ${pattern} escape '\\'`,
    );
    entries = entries.where(sql<SqlBool>`(${sql.join(like, sql` or `)})`);
  }
  return newestFirst(entries, page).execute();
}

function timeOf(name: string, text: string): number {
  const ms = Date.parse(text);
  if (ms >= 0) return ms;
  throw new ApiError('invalid_request', 'The request is not valid.', {
    details: [{ path: `query.${name}`, message: 'must not be before 1970' }],
  });
}

type Row = Awaited<ReturnType<typeof listEntries>>[number];

const present = ({ account_id, created_at, changes, ...row }: Row): AuditEntry => ({
  ...row,
  changes: changes === null ? [] : JSON.parse(changes),
  created_at: isoTime(created_at),
});

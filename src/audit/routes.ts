import { listAuditLog } from '../contract/service.ts';
import type { Db } from '../db/database.ts';
import { type Ask, isoTime, type ServedRoute, serve } from '../http/api/route.ts';

export function auditRoutes(): ServedRoute[] {
  return [
    serve(listAuditLog, async (ask, db) => ({
      body: ask.paginate(
        await listEntries(db, ask),
        (row) => row.id,
        ({ account_id, created_at, ...row }) => ({ ...row, created_at: isoTime(created_at) }),
      ),
    })),
  ];
}

function listEntries(db: Db, { caller, query, page }: Ask<typeof listAuditLog>) {
  let entries = db.selectFrom('audit').selectAll().where('account_id', '=', caller.accountId);
  if (caller.projectIds !== null) entries = entries.where('project_id', 'in', [...caller.projectIds, '']);
  if (query.project_id !== undefined) entries = entries.where('project_id', '=', query.project_id);
  if (page.after !== null) entries = entries.where('id', '<', page.after);
  return entries
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute();
}

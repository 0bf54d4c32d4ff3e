import { listAuditLog } from '../contract/service.ts';
import type { Db } from '../db/database.ts';
import { newestFirst } from '../db/keyset-page.ts';
import { type ApiCall, type ServedRoute, serve } from '../http/api/served-route.ts';
import { isoTime } from '../lib/iso-time.ts';

export function auditRoutes(): ServedRoute[] {
  return [
    serve(listAuditLog, async (call, db) => ({
      body: call.paginate(
        await listEntries(db, call),
        (row) => row.id,
        ({ account_id, created_at, ...row }) => ({ ...row, created_at: isoTime(created_at) }),
      ),
    })),
  ];
}

function listEntries(db: Db, { caller, query, page }: ApiCall<typeof listAuditLog>) {
  let entries = db.selectFrom('audit').selectAll().where('account_id', '=', caller.accountId);
  if (caller.projectIds !== null) entries = entries.where('project_id', 'in', [...caller.projectIds, '']);
  if (query.project_id !== undefined) entries = entries.where('project_id', '=', query.project_id);
  return newestFirst(entries, page).execute();
}

// What the latest health check of each instance said, as the API shows it. Only the process that looks after an
// environment makes checks, so they are rows; but few writes: when the outcome turns, else every half a minute.
import { type CheckFields, type InstanceRow, setInstanceCheck } from '../../instances.ts';
import type { ReconcileContext } from '../context.ts';

const everyMs = 30_000;
const maxMessage = 500;

/** Gives the rows as they are then. */
export async function saveChecks(context: ReconcileContext, rows: InstanceRow[]): Promise<InstanceRow[]> {
  const news = new Map<string, CheckFields>();
  for (const row of rows) {
    const check = checkOf(context, row);
    if (check && isNews(row, check)) news.set(row.id, check);
  }
  if (news.size === 0) return rows;
  await context.lease.write(async (tx) => {
    for (const [id, check] of news) await setInstanceCheck(tx, id, check);
  });
  return rows.map((row) => ({ ...row, ...news.get(row.id) }));
}

function checkOf({ health, lasting }: ReconcileContext, { id }: InstanceRow): CheckFields | null {
  const last = health.lastCheckOf(id);
  if (!last) return null;
  const { ok, message = 'connected' } = last.result;
  return {
    checked_at: Math.round(lasting.now() - last.agoMs),
    check_ok: ok ? 1 : 0,
    check_message: message.slice(0, maxMessage),
  };
}

/** Also where the clock was set back since. */
function isNews(row: InstanceRow, check: CheckFields): boolean {
  return row.check_ok !== check.check_ok || Math.abs(check.checked_at! - (row.checked_at ?? 0)) >= everyMs;
}

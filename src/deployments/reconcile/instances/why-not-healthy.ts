// Why an instance that runs is not healthy, with what can be done about it.
import type { Engine } from '../../../engines/engine.ts';
import type { InstanceRow } from '../../instances.ts';
import { notHealthy } from '../../rules/not-healthy.ts';
import type { Failure } from '../../rules/steps.ts';
import type { ReconcileContext } from '../context.ts';

/** Asks the engine what the program listens on, if that is the question. */
export async function whyNotHealthy(
  { db, health }: Pick<ReconcileContext, 'db' | 'health'>,
  engine: Engine,
  { id, project_id, environment, revision }: InstanceRow,
): Promise<Failure> {
  const check = health.lastCheckOf(id)?.result ?? null;
  if (!check || check.ok || check.fault === 'bad_answer') return notHealthy(check, null, null);
  const row = await db
    .selectFrom('revision')
    .select('port')
    .where('project_id', '=', project_id)
    .where('environment', '=', environment)
    .where('number', '=', revision)
    .executeTakeFirst();
  // Where the engine does not say, the check alone has to do.
  const listening = await engine.listening?.(id).catch(() => null);
  return notHealthy(check, row?.port ?? null, listening ?? null);
}

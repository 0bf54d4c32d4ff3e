// Why an instance that runs is not healthy, with what can be done about it.
import type { Engine } from '../../../engines/engine.ts';
import type { InstanceRow } from '../../instances.ts';
import { notHealthy } from '../../rules/not-healthy.ts';
import type { Failure } from '../../rules/steps.ts';
import type { ReconcileContext } from '../context.ts';
import { seePorts } from './listens.ts';

/** Asks the engine what the program listens on, if that is the question. */
export async function whyNotHealthy(
  context: Pick<ReconcileContext, 'db' | 'health'>,
  engine: Engine,
  row: InstanceRow,
): Promise<Failure> {
  const check = context.health.lastCheckOf(row.id)?.result ?? null;
  if (!check || (!check.ok && check.fault === 'bad_answer')) return notHealthy(check, null, null);
  // Where the engine does not say, the check alone has to do.
  const { port, listening } = await seePorts(context, engine, row);
  return notHealthy(check, port, listening);
}

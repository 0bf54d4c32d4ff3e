// What the program of an instance listens on, where its engine can tell.
import type { Engine } from '../../../engines/engine.ts';
import type { InstanceRow } from '../../instances.ts';
import type { Listening } from '../../rules/not-healthy.ts';
import type { ReconcileContext } from '../context.ts';

export interface SeenPorts {
  /** The one it should listen on; null: the revision is gone. */
  port: number | null;
  /** null: not known. */
  listening: Listening;
}

export async function seePorts(
  { db }: Pick<ReconcileContext, 'db'>,
  engine: Pick<Engine, 'listening'>,
  { id, project_id, environment, revision }: InstanceRow,
): Promise<SeenPorts> {
  const row = await db
    .selectFrom('revision')
    .select('port')
    .where('project_id', '=', project_id)
    .where('environment', '=', environment)
    .where('number', '=', revision)
    .executeTakeFirst();
  const listening = await engine.listening?.(id).catch(() => null);
  return { port: row?.port ?? null, listening: listening ?? null };
}

/**
 * Whether an instance that accepts connections may be believed. Docker's proxy accepts them for a program that does not
 * listen, and on a busy machine it takes its time to close them.
 */
export async function listens(
  context: Pick<ReconcileContext, 'db'>,
  engine: Pick<Engine, 'listening' | 'list'>,
  row: InstanceRow,
): Promise<boolean> {
  if (!engine.listening) return true;
  const { port, listening } = await seePorts(context, engine, row);
  if (port === null) return true;
  // Of one that is known to have ended nothing can be told either, and it listens nowhere.
  return listening ? listening.open.includes(port) : runs(engine, row.id);
}

async function runs(engine: Pick<Engine, 'list'>, instance: string): Promise<boolean> {
  const found = await engine.list().catch(() => []);
  return found.some(({ id, state }) => id === instance && state === 'running');
}

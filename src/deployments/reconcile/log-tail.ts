import type { Engine } from '../../engines/engine.ts';
import { keyOf } from '../../environments/key.ts';
import type { LoggedInstance } from '../../logs/store/segments.ts';
import type { InstanceRow } from '../instances.ts';

const maxLines = 50;
const maxLineLength = 2000;

/** The last lines an instance wrote; none where the engine does not answer. */
export async function readLogTail(engine: Engine, instance: string): Promise<string[]> {
  const lines = await engine.logs(instance, { tail: maxLines }).catch(() => []);
  return lines.map(({ text }) => text.slice(0, maxLineLength));
}

type Removed = Pick<InstanceRow, 'id' | 'project_id' | 'environment' | 'revision'>;

/** Stores the last lines of an instance that has ended, before it is removed. */
export type TakeLogs = (instance: LoggedInstance, engine: Engine) => Promise<void>;

/** For engines to call when an instance has ended and is about to be removed. */
export const lastLines = (takeLogs: TakeLogs | undefined, row: Removed, engine: Engine) => async (): Promise<void> =>
  takeLogs?.({ id: row.id, key: keyOf(row), revision: row.revision }, engine);

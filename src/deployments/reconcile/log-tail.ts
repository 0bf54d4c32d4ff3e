import type { Engine } from '../../engines/engine.ts';
import { keyOf } from '../../environments/key.ts';
import type { InstanceRow } from '../instances.ts';
import type { ReconcileContext } from './context.ts';

const maxLines = 50;
const maxLineLength = 2000;

/** The last lines an instance wrote; none where the engine does not answer. */
export async function readLogTail(engine: Engine, instance: string): Promise<string[]> {
  const lines = await engine.logs(instance, { tail: maxLines }).catch(() => []);
  return lines.map(({ text }) => text.slice(0, maxLineLength));
}

type Removed = Pick<InstanceRow, 'id' | 'project_id' | 'environment' | 'revision'>;

/** For engines to call when an instance has ended and is about to be removed. */
export const lastLines =
  ({ takeLogs }: Pick<ReconcileContext, 'takeLogs'>, row: Removed, engine: Engine) =>
  async (): Promise<void> =>
    takeLogs?.({ id: row.id, key: keyOf(row), revision: row.revision }, engine);

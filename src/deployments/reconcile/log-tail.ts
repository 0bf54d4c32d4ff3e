import type { Engine } from '../../engines/engine.ts';

const maxLines = 50;
const maxLineLength = 2000;

/** The last lines an instance wrote; none where the engine does not answer. */
export async function readLogTail(engine: Engine, instance: string): Promise<string[]> {
  const lines = await engine.logs(instance, { tail: maxLines }).catch(() => []);
  return lines.map(({ text }) => text.slice(0, maxLineLength));
}

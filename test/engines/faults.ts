// How engines fail.
import assert from 'node:assert/strict';
import {
  type Engine,
  EngineError,
  type EngineFault,
  type InstanceEngine,
  type InstanceSpec,
} from '../../src/engines/engine.ts';
import { start, type Workload } from '../helpers/instances.ts';

export const isFault = (fault: EngineFault) => (error: unknown) =>
  error instanceof EngineError && error.fault === fault;

/** Each method rejects with `unavailable`, and does not take long over it. */
export async function assertAway(
  engine: Engine | InstanceEngine,
  { image, variables }: Workload,
  spec: InstanceSpec,
  exceptions: string[] = [],
) {
  const calls: Record<string, () => Promise<unknown>> = {
    probe: () => engine.probe(),
    prepare: () => engine.prepare(image, variables),
    start: () => start(engine, { ...spec, id: `${spec.id}-other` }),
    list: () => engine.list(),
    stop: () => engine.stop(spec.id, 0),
    logs: () => engine.logs(spec.id, { tail: 10 }),
  };
  await Promise.all(
    Object.entries(calls).map(async ([method, call]) => {
      if (exceptions.includes(method)) return;
      const before = performance.now();
      await assert.rejects(call, isFault('unavailable'), method);
      assert.ok(performance.now() - before < 15_000, `${method} took too long`);
    }),
  );
}

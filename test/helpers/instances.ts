// Instances for tests of engines.
import type { Engine, EngineInstance, InstanceEngine, InstanceSpec } from '../../src/engines/engine.ts';
import { until } from './wait.ts';

export type InstanceAddress = NonNullable<EngineInstance['address']>;

/** What to run, and the variables that make it behave. */
export interface Workload {
  image: string;
  variables: Record<string, string>;
}

let count = 0;
/** An id that no other test on this machine uses. */
export const ids = (prefix: string): string => `${prefix}-${process.pid}-${Date.now().toString(36)}-${count++}`;

/** Prepares the image and says what to start. */
export async function specOf(engine: Pick<Engine, 'prepare'>, workload: Workload, more: Partial<InstanceSpec> = {}) {
  const { image, variables } = workload;
  const { digest } = await engine.prepare(image, variables);
  const whose = { project: ids('prj'), environment: 'production', revision: 1 };
  return {
    id: ids('instance'),
    ...whose,
    image,
    digest,
    port: 8080,
    hostPort: null,
    variables,
    resources: { memory_mb: 512, cpus: 1 },
    ...more,
  } satisfies InstanceSpec;
}

/** Starts it, in a set of its own where the engine runs sets. */
export async function start(engine: Engine | InstanceEngine, spec: InstanceSpec): Promise<void> {
  if ('start' in engine) return engine.start(spec);
  const { id, hostPort, ...set } = spec;
  await Promise.all(engine.keep({ ...set, id: `set-of-${id}` }, [{ id, hostPort }]));
}

/** Starts it and waits until it answers HTTP. */
export async function startReady(engine: Engine | InstanceEngine, spec: InstanceSpec) {
  await start(engine, spec);
  return answers(engine, spec.id);
}

/** Waits until the instance answers HTTP. */
export function answers(engine: Pick<Engine, 'list'>, id: string) {
  return until(
    'an answer',
    async () => {
      const instance = (await engine.list()).find((one) => one.id === id);
      if (!instance?.address) return null;
      const { address } = instance;
      const answers = await fetch(`http://${address.host}:${address.port}/`).then(
        (response) => response.arrayBuffer().then(() => true),
        () => false,
      );
      return answers && { instance, address };
    },
    30_000,
  );
}

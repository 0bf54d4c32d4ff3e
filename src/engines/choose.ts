// From a region's setting to its engine, with a line for the operator that says which and why.
import { existsSync } from 'node:fs';
import type { EngineChoice } from '../config.ts';
import { StartError } from '../lib/start-error.ts';
import { createDockerEngine, defaultDockerSocket } from './docker.ts';
import type { Engine } from './engine.ts';
import { createStandinEngine } from './standin.ts';

export interface Chosen {
  engine: Engine;
  why: string;
}

export async function chooseEngine(region: string, choice: EngineChoice): Promise<Chosen> {
  switch (choice.kind) {
    case 'standin':
      return standin('as set');
    case 'docker':
      return { engine: await createDockerEngine(choice.address), why: 'Docker, as set' };
    case 'kubernetes':
      throw new StartError(`SLUICE_REGIONS ${region}: the kubernetes engine is not part of this version`);
    case 'auto':
      return chooseAutomatically();
  }
}

async function chooseAutomatically(): Promise<Chosen> {
  if (!existsSync(defaultDockerSocket)) return standin(`there is no ${defaultDockerSocket}`);
  const engine = await createDockerEngine(null);
  try {
    await engine.probe();
    return { engine, why: `Docker, which answers at ${defaultDockerSocket}` };
  } catch {
    return standin(`${defaultDockerSocket} does not answer`);
  }
}

function standin(reason: string): Chosen {
  return { engine: createStandinEngine(), why: `the stand-in (${reason}): no container is started` };
}

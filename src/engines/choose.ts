// Opens the engine that a region's setting asks for, and says for the operator which one it is and why.
import { existsSync } from 'node:fs';
import { StartError } from '../lib/start-error.ts';
import { defaultDockerSocket } from './docker/address.ts';
import { createDockerEngine, type DockerOptions } from './docker/docker.ts';
import type { Engine } from './engine.ts';
import type { EngineChoice } from './region-setting.ts';
import { type RegistryAuths, RegistryConfigError, readRegistryAuths } from './registry/auths.ts';
import { standinInOwnProcess } from './standin/own-process.ts';
import { createStandinEngine } from './standin/standin.ts';

export interface Chosen {
  engine: Engine;
  why: string;
}

interface EngineSettings {
  /** Tells apart the installations that share an engine. */
  installation: string;
  /** Path of a Docker config.json; null if there is none. */
  registryConfig: string | null;
  /** The data directory, in whose process the stand-in's instances run; null: in this process. */
  standinDir: string | null;
}

export async function chooseEngine(region: string, choice: EngineChoice, settings: EngineSettings): Promise<Chosen> {
  const docker = {
    // Two regions may use the same engine; neither may see the other's instances.
    installation: `${settings.installation}-${region}`,
    registryAuths: registryAuthsOf(settings.registryConfig),
  };
  switch (choice.kind) {
    case 'standin':
      return standin(settings.standinDir, docker.installation, 'as set');
    case 'docker':
      return { engine: await createDockerEngine({ ...docker, address: choice.address }), why: 'Docker, as set' };
    case 'kubernetes':
      throw new StartError(`SLUICE_REGIONS ${region}: the kubernetes engine is not part of this version`);
    case 'auto':
      return chooseAutomatically(docker, settings.standinDir);
  }
}

async function chooseAutomatically(docker: Omit<DockerOptions, 'address'>, standinDir: string | null): Promise<Chosen> {
  const otherwise = (reason: string) => standin(standinDir, docker.installation, reason);
  if (!existsSync(defaultDockerSocket)) return otherwise(`there is no ${defaultDockerSocket}`);
  const engine = await createDockerEngine({ ...docker, address: null });
  try {
    await engine.probe();
    return { engine, why: `Docker, which answers at ${defaultDockerSocket}` };
  } catch {
    await engine.close();
    return otherwise(`${defaultDockerSocket} does not answer`);
  }
}

function standin(dir: string | null, installation: string, reason: string): Chosen {
  const engine = dir === null ? createStandinEngine() : standinInOwnProcess(dir, installation);
  return { engine, why: `the stand-in (${reason}): no container is started` };
}

/** Reads the file once now, so that a mistake in it stops the start; then again for every pull. */
function registryAuthsOf(path: string | null): () => RegistryAuths {
  if (path === null) return () => new Map();
  try {
    readRegistryAuths(path);
  } catch (error) {
    if (error instanceof RegistryConfigError) throw new StartError(`SLUICE_REGISTRY_CONFIG ${error.message}`);
    throw error;
  }
  return () => readRegistryAuths(path);
}

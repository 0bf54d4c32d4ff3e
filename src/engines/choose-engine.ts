// Opens the engine that a region's setting asks for, and says for the operator which one it is and why.
import { existsSync } from 'node:fs';
import type { Log } from '../lib/log.ts';
import { createDockerEngine, type DockerOptions } from './docker/docker.ts';
import { defaultDockerSocket } from './docker/docker-address.ts';
import { openDockerHosts } from './docker/hosts/docker-hosts.ts';
import type { SubnetPool } from './docker/subnets.ts';
import { type Engine, runSets } from './engine.ts';
import { type EngineChoice, type OpenableChoice, parseEngine } from './engine-settings.ts';
import { openKubernetes } from './kubernetes/kubernetes.ts';
import type { KubernetesSettings } from './kubernetes/kubernetes-settings.ts';
import type { Mirrors } from './registry/registry-endpoints.ts';
import { createStandinEngine } from './standin/standin.ts';
import { standinInOwnProcess } from './standin/standin-process.ts';

export interface Decision {
  choice: OpenableChoice;
  why: string;
}

export interface EngineSettings {
  /** Tells apart the installations that share an engine. */
  installation: string;
  dockerNetworks: SubnetPool;
  /** How long one of several Docker hosts may be away before what it runs is replaced. */
  dockerHostGraceS: number;
  dockerDiskMb: number;
  pullTimeoutS: number;
  registryMirrors: Mirrors;
  kubernetes: KubernetesSettings;
  /** The data directory, in whose process the stand-in's instances run; null: in this process. */
  standinDir: string | null;
  log?: Log;
}

/**
 * `remembered`: what the region's engine has been so far, as engineText() writes it; null: it has had none. An engine that
 * is named always counts. `auto` goes on with what has been: an engine that is away for a while is not another engine.
 */
export async function decideEngine(choice: EngineChoice, remembered: string | null): Promise<Decision> {
  if (choice.kind !== 'auto') return { choice, why: `${nameOf(choice)}, as set` };
  const known = remembered === null ? null : parseEngine(remembered);
  if (known && known.kind !== 'auto') return { choice: known, why: await rememberedWhy(known) };
  return decideAutomatically();
}

async function decideAutomatically(): Promise<Decision> {
  const fault = await dockerFault();
  const docker: OpenableChoice = { kind: 'docker', address: null };
  if (fault === null) return { choice: docker, why: `Docker, which answers at ${defaultDockerSocket}` };
  return { choice: { kind: 'standin' }, why: `${standinName} (${fault})` };
}

async function rememberedWhy(choice: OpenableChoice): Promise<string> {
  const why = `${nameOf(choice)}, remembered from an earlier start`;
  if (choice.kind !== 'standin' || (await dockerFault()) !== null) return why;
  return `${why}; Docker answers at ${defaultDockerSocket} now: to use it, name it in SLUICE_REGIONS (docker:)`;
}

/** Why Docker cannot be used here; null: it can. */
async function dockerFault(): Promise<string | null> {
  if (!existsSync(defaultDockerSocket)) return `there is no ${defaultDockerSocket}`;
  const engine = await createDockerEngine({ address: null, installation: 'probe' });
  try {
    await engine.probe();
    return null;
  } catch (error) {
    return `${defaultDockerSocket} does not answer: ${(error as Error).message}`;
  } finally {
    await engine.close();
  }
}

const standinName = 'the stand-in, which starts no containers';

function nameOf(choice: OpenableChoice): string {
  switch (choice.kind) {
    case 'standin':
      return standinName;
    case 'docker':
      return choice.address === null ? 'Docker' : `Docker at ${choice.address}`;
    case 'docker-hosts':
      return `Docker on ${choice.addresses.length} hosts (${choice.addresses.join(', ')})`;
    case 'kubernetes':
      return choice.context === null ? 'Kubernetes' : `Kubernetes (${choice.context})`;
  }
}

export async function openEngine(region: string, choice: OpenableChoice, settings: EngineSettings): Promise<Engine> {
  const owner = ownerName(settings.installation, region);
  switch (choice.kind) {
    case 'standin':
      return runSets(
        settings.standinDir === null ? createStandinEngine() : standinInOwnProcess(settings.standinDir, owner),
      );
    case 'docker':
      return runSets(await createDockerEngine(dockerOptions(choice.address, owner, settings)));
    case 'docker-hosts': {
      const options = choice.addresses.map((address) => dockerOptions(address, owner, settings));
      const log = settings.log?.child({ region });
      return runSets(await openDockerHosts(options, settings.dockerHostGraceS * 1000, log));
    }
    case 'kubernetes':
      return openKubernetes(region, choice.context, owner, settings);
  }
}

function dockerOptions(address: string | null, installation: string, settings: EngineSettings): DockerOptions {
  const { dockerNetworks: subnetPool, dockerDiskMb: diskMb, pullTimeoutS } = settings;
  return { address, installation, subnetPool, diskMb, timeouts: { pull: pullTimeoutS * 1000 } };
}

/** Two regions may use the same engine; neither may see the other's instances. */
export const ownerName = (installation: string, region: string): string => `${installation}-${region}`;

// Opens the engine of every region. What a region's engine is, is decided once: `auto` goes on with what is remembered in
// the database, and a change of the setting gives a warning, because what runs on the old engine stays there.
import type { Config } from '../config.ts';
import type { Db } from '../db/database.ts';
import { findInstallation } from '../db/installation.ts';
import { type Decision, decideEngine, type EngineSettings, openEngine, ownerName } from '../engines/choose-engine.ts';
import type { Engine } from '../engines/engine.ts';
import { engineText, leftBehind, type RegionSetting } from '../engines/engine-settings.ts';
import {
  countInstancesIn,
  findRememberedEngine,
  Regions,
  rememberEngine,
  rememberFirstEngine,
} from '../regions/regions.ts';
import type { Common } from './common.ts';

interface OpenRegion {
  name: string;
  engine: Engine;
  lines: string[];
}

/** `lines` say, for each region, which engine it has and why. What only carries requests, or serves files, opens none. */
export async function openRegions(
  config: Config,
  { db, clock, log }: Common,
  { standinInProcess = false, engines = {} }: { standinInProcess?: boolean; engines?: Record<string, Engine> },
): Promise<{ regions: Regions; lines: string[] }> {
  const { dockerNetworks, dockerHostGraceS, dockerDiskMb, pullTimeoutS, registryMirrors, kubernetes } = config;
  const standinDir = standinInProcess ? null : config.dataDir;
  const settings = {
    installation: await findInstallation(db),
    dockerNetworks,
    dockerHostGraceS,
    dockerDiskMb,
    pullTimeoutS,
    registryMirrors,
    kubernetes,
    standinDir,
    log,
  };
  // Instances are started by workers alone, so it is for them to say what starts them.
  const remembers = config.roles.includes('worker');
  const opened: OpenRegion[] = [];
  const needed = remembers || config.roles.includes('api') ? config.regions : [];
  for (const region of needed) {
    const engine = engines[region.name];
    opened.push(engine ? { name: region.name, engine, lines: [] } : await openRegion(db, region, settings, remembers));
  }
  return { regions: new Regions(opened, clock, log), lines: opened.flatMap(({ lines }) => lines) };
}

async function openRegion(
  db: Db,
  { name, engine: setting }: RegionSetting,
  settings: EngineSettings,
  remembers: boolean,
): Promise<OpenRegion> {
  const before = await findRememberedEngine(db, name);
  const isFirst = setting.kind === 'auto' && before === null && remembers;
  const { choice, why } = isFirst ? await decideForAll(db, name) : await decideEngine(setting, before);
  const engine = await openEngine(name, choice, settings);
  const now = engineText(choice);
  const lines = [`region ${name}: ${why}`];
  if (before !== null && before !== now) lines.push(...(await changeWarning(db, name, before, now, settings)));
  if (remembers) await rememberEngine(db, name, now);
  return { name, engine, lines };
}

/** The first process to start decides; those that start at the same time agree with it. */
async function decideForAll(db: Db, name: string): Promise<Decision> {
  const decision = await decideEngine({ kind: 'auto' }, null);
  const own = engineText(decision.choice);
  const agreed = await rememberFirstEngine(db, name, own);
  return agreed === own ? decision : decideEngine({ kind: 'auto' }, agreed);
}

/** Instances on the old engine are no longer looked after. */
async function changeWarning(
  db: Db,
  name: string,
  before: string,
  now: string,
  { installation }: EngineSettings,
): Promise<string[]> {
  const left = leftBehind(before, now);
  const count = await countInstancesIn(db, name);
  if (count === 0 || left.length === 0) return [];
  const owner = `sluice.installation=${ownerName(installation, name)}`;
  const filter = `label=${owner}`;
  const removal = before.startsWith('docker:')
    ? `; there: docker rm -f $(docker ps -aq --filter ${filter})`
    : before.startsWith('kubernetes:')
      ? `; there: kubectl delete replicasets -A -l ${owner}`
      : '';
  const whose = left.join('+') === before ? `Its instances (${count})` : `Those of its instances on ${left.join(', ')}`;
  return [
    `region ${name}: WARNING: its engine was ${before} and is ${now} now. ${whose} are started anew; ` +
      `unless both are the same engine, remove the old ones by hand${removal}`,
  ];
}

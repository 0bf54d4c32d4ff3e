import type { Config } from '../config.ts';
import { findInstallation } from '../db/installation.ts';
import { chooseEngine } from '../engines/choose.ts';
import { Regions } from '../regions/regions.ts';
import type { Common } from './common.ts';

/** `lines` say, for each region, which engine was chosen and why. */
export async function openRegions(
  config: Config,
  { db, clock }: Common,
  standinInProcess: boolean,
): Promise<{ regions: Regions; lines: string[] }> {
  const settings = {
    installation: await findInstallation(db),
    registryConfig: config.registryConfig,
    standinDir: standinInProcess ? null : config.dataDir,
  };
  const chosen = await Promise.all(
    config.regions.map(async ({ name, engine }) => ({ name, ...(await chooseEngine(name, engine, settings)) })),
  );
  return { regions: new Regions(chosen, clock), lines: chosen.map(({ name, why }) => `region ${name}: ${why}`) };
}

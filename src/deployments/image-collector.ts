// Removes images that no revision refers to any more from the engines that pulled them: now and then, and at once when a
// disk is full. What an engine may remove at all is up to it (Engine.removeImages).
import { Counter, type Registry } from 'prom-client';
import { imageIdOf } from '../contract/references.ts';
import type { Db } from '../db/database.ts';
import type { Log } from '../lib/log.ts';
import type { Loop, Loops } from '../lib/loops.ts';
import type { Regions } from '../regions/regions.ts';

interface CollectorParts {
  db: Db;
  loops: Loops;
  log: Log;
  regions: Regions;
  registry: Registry;
  /** How long an image stays after the last revision that refers to it has gone. */
  imagesKeptMs: number;
}

/** Often enough to notice that a disk fills. */
const collectEveryMs = 60_000;

export class ImageCollector {
  readonly #parts: CollectorParts;
  readonly #removed: Counter<'region'>;
  readonly #freed: Counter<'region'>;
  readonly #full = new Set<string>();
  #loop: Loop | null = null;

  constructor(parts: CollectorParts) {
    this.#parts = parts;
    const common = { labelNames: ['region'] as const, registers: [parts.registry] };
    this.#removed = new Counter({ name: 'sluice_images_removed_total', help: 'Images that were removed.', ...common });
    this.#freed = new Counter({ name: 'sluice_images_freed_bytes_total', help: 'Bytes of removed images.', ...common });
  }

  start(): void {
    const step = () => this.#collectAll();
    this.#loop = this.#parts.loops.start({ name: 'unused images', intervalMs: collectEveryMs, step });
  }

  async stop(): Promise<void> {
    await this.#loop?.stop();
  }

  /** Something did not fit on the disk of the region. */
  onDiskFull = (region: string): void => {
    this.#full.add(region);
    this.#loop?.wake();
  };

  async #collectAll(): Promise<void> {
    const regions = this.#parts.regions.all().filter(({ engine, available }) => engine.removeImages && available);
    if (regions.length === 0) return;
    const kept = await listKeptDigests(this.#parts.db);
    for (const { name } of regions) {
      const isUrgent = this.#full.delete(name);
      await this.#collect(name, kept, isUrgent).catch((error) =>
        this.#parts.log.warn({ err: error, region: name }, 'unused images were not removed'),
      );
    }
  }

  async #collect(region: string, kept: ReadonlySet<string>, isUrgent: boolean): Promise<void> {
    const { regions, imagesKeptMs, log } = this.#parts;
    const { images, bytes } = await regions.find(region)!.engine.removeImages!(kept, imagesKeptMs, isUrgent);
    if (images === 0) return;
    this.#removed.inc({ region }, images);
    this.#freed.inc({ region }, bytes);
    log.info({ region, images, bytes }, 'removed images that nothing needs');
  }
}

/** Of every revision that runs or may be rolled back to. */
async function listKeptDigests(db: Db): Promise<Set<string>> {
  const rows = await db
    .selectFrom('revision')
    .select('digest')
    .distinct()
    .where('digest', 'is not', null)
    .where('state', 'not in', ['retired', 'failed'])
    .execute();
  return new Set(rows.map(({ digest }) => imageIdOf(digest!) ?? digest!));
}

/** Whether an engine could not do something for want of room. */
export const isDiskFull = (error: unknown): boolean =>
  /no space left on device|disk quota exceeded/i.test(error instanceof Error ? error.message : '');

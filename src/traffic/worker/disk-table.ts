// The last routing table on disk, for workers that start while there is no agent. The file holds a whole table, one
// environment a line, followed by the changes since; a change costs one line. A file with many changes is written anew.
// What is here may be older than what is in force elsewhere, never newer.

import { readFileSync } from 'node:fs';
import { appendFile, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../lib/log.ts';
import { type EnvironmentRoutes, routesKey } from '../table.ts';

/** Changes that may follow a whole table, besides as many as it has environments. */
const spareLines = 1000;
const linesAtOnce = 500;

type Line = { whole: number } | { routes: EnvironmentRoutes } | { version: number; changed: EnvironmentRoutes[] };

const pathIn = (dir: string): string => join(dir, 'table.ndjson');

export interface DiskTable {
  version: number;
  environments: EnvironmentRoutes[];
}

/** null: there is none. A last line that was not completed is left out. */
export function readDiskTable(dir: string): DiskTable | null {
  let text: string;
  try {
    text = readFileSync(pathIn(dir), 'utf8');
  } catch {
    return null;
  }
  const environments = new Map<string, EnvironmentRoutes>();
  let version: number | null = null;
  for (const line of text.split('\n').slice(0, -1)) {
    const entry = JSON.parse(line) as Line;
    if ('whole' in entry) version = entry.whole;
    else if ('routes' in entry) environments.set(routesKey(entry.routes), entry.routes);
    else if (version !== null && entry.version > version) {
      for (const routes of entry.changed) environments.set(routesKey(routes), routes);
      version = entry.version;
    }
  }
  return version === null ? null : { version, environments: [...environments.values()] };
}

/** Writes in the background, in order. What cannot be written is logged, and written with the next whole table. */
export class DiskTableWriter {
  readonly #dir: string;
  readonly #log: Log;
  readonly #snapshot: () => DiskTable;
  #changes: Line[] = [];
  #needsWhole = false;
  #lines = 0;
  #writing: Promise<void> | null = null;

  /** `snapshot` gives the table as it is now. */
  constructor(dir: string, log: Log, snapshot: () => DiskTable) {
    this.#dir = dir;
    this.#log = log;
    this.#snapshot = snapshot;
  }

  replace(): void {
    this.#needsWhole = true;
    this.#start();
  }

  change(version: number, changed: EnvironmentRoutes[]): void {
    this.#changes.push({ version, changed });
    this.#start();
  }

  async settle(): Promise<void> {
    await this.#writing;
  }

  #start(): void {
    this.#writing ??= this.#write()
      .catch((error) => {
        this.#needsWhole = true;
        this.#log.warn({ err: error }, 'the routing table could not be written to disk');
      })
      .finally(() => {
        this.#writing = null;
      });
  }

  async #write(): Promise<void> {
    while (this.#needsWhole || this.#changes.length > 0) {
      if (this.#needsWhole || this.#lines <= 0) await this.#writeWhole();
      const changes = this.#changes;
      this.#changes = [];
      this.#lines -= changes.length;
      if (changes.length > 0) await appendFile(pathIn(this.#dir), textOf(changes), { mode: 0o600 });
    }
  }

  async #writeWhole(): Promise<void> {
    this.#needsWhole = false;
    this.#changes = [];
    const { version, environments } = this.#snapshot();
    const fresh = `${pathIn(this.#dir)}.${process.pid}`;
    const file = await open(fresh, 'w', 0o600);
    try {
      await file.write(textOf([{ whole: version }]));
      for (let i = 0; i < environments.length; i += linesAtOnce) {
        await file.write(textOf(environments.slice(i, i + linesAtOnce).map((routes) => ({ routes }))));
      }
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(fresh, pathIn(this.#dir));
    this.#lines = environments.length + spareLines;
  }
}

const textOf = (lines: Line[]): string => lines.map((line) => `${JSON.stringify(line)}\n`).join('');

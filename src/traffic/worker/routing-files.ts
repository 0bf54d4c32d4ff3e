// The last routing table and the certificates in use on disk, for workers that start while there is no agent. What is
// here may be older than what is in force elsewhere, never newer.
//
// The file of the table holds a whole table, one environment a line, followed by the changes since; a change costs one
// line, and a file with many changes is rewritten.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { appendFile, mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Log } from '../../lib/log.ts';
import { createSeal, type Seal } from '../../lib/seal.ts';
import { type EnvironmentRoutes, routesKey, type StoredCertificate } from '../data-plane.ts';
import { tablePathIn } from './agent-protocol.ts';

/** Changes that may follow a whole table, besides as many as it has environments. */
const spareLines = 1000;
const linesAtOnce = 500;

type Line = { whole: number } | { routes: EnvironmentRoutes } | { version: number; changed: EnvironmentRoutes[] };

interface DiskTable {
  version: number;
  environments: EnvironmentRoutes[];
}

interface ReadTable extends DiskTable {
  /** Lines that were left out because they are not as they were written. */
  damaged: number;
}

/** null: there is none. A line that is damaged is left out, and so is a last one that was not completed. */
export function readDiskTable(dir: string): ReadTable | null {
  let text: string;
  try {
    text = readFileSync(tablePathIn(dir), 'utf8');
  } catch {
    return null;
  }
  const environments = new Map<string, EnvironmentRoutes>();
  let version: number | null = null;
  let damaged = 0;
  for (const line of text.split('\n').slice(0, -1)) {
    const entry = readLine(line);
    if (entry === null) damaged++;
    else if ('whole' in entry) version = entry.whole;
    else if ('routes' in entry) environments.set(routesKey(entry.routes), entry.routes);
    else if (entry.version > (version ?? 0)) {
      for (const routes of entry.changed) environments.set(routesKey(routes), routes);
      version = entry.version;
    }
  }
  // Where the line with the version is damaged, the agent is asked for everything.
  if (version === null && damaged === 0) return null;
  return { version: version ?? 0, environments: [...environments.values()], damaged };
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
      if (changes.length > 0) await appendFile(tablePathIn(this.#dir), textOf(changes), { mode: 0o600 });
    }
  }

  async #writeWhole(): Promise<void> {
    this.#needsWhole = false;
    this.#changes = [];
    const { version, environments } = this.#snapshot();
    const temporary = `${tablePathIn(this.#dir)}.${process.pid}`;
    const file = await open(temporary, 'w', 0o600);
    try {
      await file.write(textOf([{ whole: version }]));
      for (let i = 0; i < environments.length; i += linesAtOnce) {
        await file.write(textOf(environments.slice(i, i + linesAtOnce).map((routes) => ({ routes }))));
      }
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, tablePathIn(this.#dir));
    this.#lines = environments.length + spareLines;
  }
}

/** Each line begins with its checksum. */
const textOf = (lines: Line[]): string => lines.map((line) => `${withChecksum(JSON.stringify(line))}\n`).join('');

const withChecksum = (text: string): string => `${crc32(text).toString(16).padStart(8, '0')} ${text}`;

/** null: it is damaged. Versions before this one wrote lines without a checksum. */
function readLine(line: string): Line | null {
  const text = line.startsWith('{') ? line : line.slice(9);
  if (!line.startsWith('{') && withChecksum(text) !== line) return null;
  try {
    return JSON.parse(text) as Line;
  } catch {
    return null;
  }
}

/** The key that workers get, which opens these files and nothing else. */
export const routingKey = (seal: Seal): Buffer => seal.mac('routing files');

interface CertificateFile {
  hostname: string;
  id: string;
  chainPem: string;
  keySealed: string;
}

const contextOf = (hostname: string, id: string): string => `routing certificate ${hostname} ${id}`;

/** A file per host name. Private keys are sealed with a key that opens these files only. */
export class DiskCertificates {
  readonly #dir: string;
  readonly #seal: Seal;
  #writing: Promise<unknown> = Promise.resolve();

  constructor(routingDir: string, key: Buffer) {
    this.#dir = join(routingDir, 'certificates');
    this.#seal = createSeal(key);
  }

  #path(hostname: string): string {
    return join(this.#dir, `${createHash('sha256').update(hostname).digest('hex').slice(0, 32)}.json`);
  }

  /** null: there is none. Rejects where it cannot be read. */
  async read(hostname: string): Promise<StoredCertificate | null> {
    const text = await readFile(this.#path(hostname), 'utf8').catch((error) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    if (text === null) return null;
    const { id, chainPem, keySealed } = JSON.parse(text) as CertificateFile;
    return { id, chainPem, keyPem: this.#seal.open(keySealed, contextOf(hostname, id)) };
  }

  /** One after another, so that the last one written is the one that stays; null: there is none any more. */
  write(hostname: string, certificate: StoredCertificate | null): Promise<void> {
    const written = this.#writing.then(() => this.#replace(hostname, certificate));
    this.#writing = written.catch(() => {});
    return written;
  }

  async #replace(hostname: string, certificate: StoredCertificate | null): Promise<void> {
    const path = this.#path(hostname);
    if (certificate === null) return rm(path, { force: true });
    const { id, chainPem, keyPem } = certificate;
    const file: CertificateFile = {
      hostname,
      id,
      chainPem,
      keySealed: this.#seal.seal(keyPem, contextOf(hostname, id)),
    };
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    const temporary = `${path}.${process.pid}`;
    await writeFile(temporary, JSON.stringify(file), { mode: 0o600 });
    await rename(temporary, path);
  }
}

// The certificates in use on disk, for workers that start while there is no agent: a file per host name. Keys are sealed,
// with a key that is good for these files only.
import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createSeal, type Seal } from '../../lib/seal.ts';
import type { StoredCertificate } from '../certificates.ts';

/** What workers get to open these files, and nothing else, with. */
export const routingKey = (seal: Seal): Buffer => seal.mac('routing files');

interface CertificateFile {
  hostname: string;
  id: string;
  chainPem: string;
  keySealed: string;
}

const contextOf = (hostname: string, id: string): string => `routing certificate ${hostname} ${id}`;

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
    const fresh = `${path}.${process.pid}`;
    await writeFile(fresh, JSON.stringify(file), { mode: 0o600 });
    await rename(fresh, path);
  }
}

// A published site, a way to damage it, and a way to make digests, compressed forms and ledger agree with the damage again,
// so that only a check that looks inside the files can find it.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { listFiles } from '../../src/catalogue/files.ts';
import type { PublishLine } from '../../src/catalogue/ledger.ts';
import type { SitePaths } from '../../src/catalogue/site-paths.ts';
import { compressedForms, formatSums, isText } from '../../src/catalogue/site-texts.ts';

export interface Damage {
  site: string;
  ledger: string;
  /** Bytes as latin1, so that media can be edited too. */
  edit(path: string, change: (text: string) => string): Promise<void>;
  write(path: string, bytes: string | Buffer): Promise<void>;
  remove(path: string): Promise<void>;
}

export function damageOf({ site, ledger }: SitePaths): Damage {
  const edit: Damage['edit'] = async (path, change) => {
    const file = path === 'ledger' ? ledger : join(site, path);
    const text = await readFile(file, 'latin1');
    const next = change(text);
    assert.notEqual(next, text, `the damage to ${path} does nothing`);
    await writeFile(file, next, 'latin1');
  };
  return {
    site,
    ledger,
    edit,
    write: (path, bytes) => writeFile(join(site, path), bytes),
    remove: (path) => rm(join(site, path)),
  };
}

const isFormOf = (text: Buffer, packed: Buffer | null) => packed !== null && brotliDecompressSync(packed).equals(text);

/** To make the best form of a text takes long, and damage is done to one or two. */
async function renewForms(site: string, path: string): Promise<void> {
  const text = await readFile(join(site, path));
  if (isFormOf(text, await readFile(join(site, `${path}.br`)).catch(() => null))) return;
  for (const suffix of ['.br', '.gz']) await rm(join(site, path + suffix), { force: true });
  for (const { suffix, bytes } of await compressedForms(text)) await writeFile(join(site, path + suffix), bytes);
}

/** Makes forms, checksums and ledger say that the site, as it is, was published so. */
export async function reseal({ site, ledger }: SitePaths): Promise<void> {
  const texts = (await listFiles(site)).filter((path) => isText(path) && !/^gallery\/|SHA256SUMS$/.test(path));
  for (const path of texts) await renewForms(site, path);
  const digests = new Map<string, string>();
  const sizes = new Map<string, number>();
  for (const name of await listFiles(join(site, 'media'))) {
    if (name.startsWith('SHA256SUMS')) continue;
    const bytes = await readFile(join(site, 'media', name));
    digests.set(name, createHash('sha256').update(bytes).digest('hex'));
    sizes.set(name, bytes.length);
  }
  await writeFile(join(site, 'media/SHA256SUMS'), formatSums(digests));
  await renewForms(site, 'media/SHA256SUMS');
  const lines = (await readLines(ledger)).map((line) => {
    const own = [...digests].filter(([name]) => name.startsWith(`${line.id}/`));
    const files = own.map(([name, sha256]) => [`media/${name}`, { sha256, size: sizes.get(name)! }]);
    return { ...line, files: Object.fromEntries(files) };
  });
  await writeFile(ledger, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}

export async function readLines(ledger: string): Promise<PublishLine[]> {
  const text = await readFile(ledger, 'utf8');
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as PublishLine);
}

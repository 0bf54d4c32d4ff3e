// The texts of a site: their compressed forms, the checksums, and the gallery. Each text has compressed copies beside
// it (`x.br`, `x.gz`), for servers that send such files as they are. Small playlists too: Apple's authoring rules
// (10.1) want every one of them compressed.

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { installDir, packedDir } from '../lib/install.ts';
import { HEALTH_PATH } from './site-paths.ts';

/** Above this size brotli's best quality takes seconds, for about one percent. */
const maxBestBrotliBytes = 128 * 1024;
/** A text of this size always becomes smaller. */
const alwaysSmallerBytes = 1000;

export const formSuffixes = ['.br', '.gz'] as const;
type FormSuffix = (typeof formSuffixes)[number];

export const isText = (path: string) => /\.(json|m3u8|vtt|html|css|js|txt|svg)$|(^|\/)SHA256SUMS$/.test(path);

/** The texts that are published with compressed forms; three bytes of health do not become fewer. */
export const hasForms = (path: string) => isText(path) && path !== HEALTH_PATH;

/** Whether a text without compressed forms lacks something. */
export const needsForms = (bytes: Buffer) => bytes.length >= alwaysSmallerBytes;

/** The compressed forms of a text that are smaller than the text itself. */
export async function compressedForms(bytes: Buffer): Promise<{ suffix: FormSuffix; bytes: Buffer }[]> {
  const quality = bytes.length > maxBestBrotliBytes ? 9 : 11;
  const params = { [constants.BROTLI_PARAM_QUALITY]: quality, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(bytes, { params }),
    promisify(gzip)(bytes, { level: constants.Z_BEST_COMPRESSION }),
  ]);
  const forms: { suffix: FormSuffix; bytes: Buffer }[] = [
    { suffix: '.br', bytes: br },
    { suffix: '.gz', bytes: gz },
  ];
  return forms.filter((form) => form.bytes.length < bytes.length);
}

// SHA256SUMS in the format of coreutils: digest, two spaces, path relative to media/, sorted by path.
export function formatSums(digests: Map<string, string>): string {
  const paths = [...digests.keys()].sort((a, b) => (a < b ? -1 : 1));
  return paths.map((path) => `${digests.get(path)}  ${path}\n`).join('');
}

export function parseSums(text: string): { digests: Map<string, string>; faults: string[] } {
  const digests = new Map<string, string>();
  const faults: string[] = [];
  const lines = text.split('\n');
  if (lines.pop() !== '') faults.push('the last line does not end');
  let previous = '';
  for (const [i, line] of lines.entries()) {
    const match = /^([0-9a-f]{64}) [ *](.+)$/.exec(line);
    if (match === null) {
      faults.push(`line ${i + 1} is not "<sha256>  <path>"`);
      continue;
    }
    const [, digest, path] = match as unknown as [string, string, string];
    if (path.startsWith('/') || path.split('/').includes('..')) faults.push(`line ${i + 1} leads outside media/`);
    if (path <= previous) faults.push(`line ${i + 1} is out of order`);
    previous = path;
    digests.set(path, digest);
  }
  return { digests, faults };
}

const galleryFolder = join(installDir, 'src/catalogue/gallery');
const scripts = ['gallery.js', 'player.js', 'menus.js', 'chapters.js', 'network.js', 'text.js'];
const galleryNames = ['index.html', 'gallery.css', ...scripts, 'icon.svg'];

/** hls.js, as its package ships it. */
function player(): string {
  try {
    return createRequire(import.meta.url).resolve('hls.js/dist/hls.min.js');
  } catch {
    return join(packedDir, 'hls.min.js');
  }
}

/** The files that the gallery is made of, where they are installed. */
export const gallerySources = () => [player(), ...galleryNames.map((name) => join(galleryFolder, name))];

/** Path in the site → bytes. Everything but the page itself lies under `gallery/`. */
export async function galleryFiles(): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>();
  // The source map it names is not published.
  const script = (await readFile(player(), 'utf8')).replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n');
  files.set('gallery/hls.min.js', Buffer.from(script));
  for (const name of galleryNames) {
    files.set(name === 'index.html' ? name : `gallery/${name}`, await readFile(join(galleryFolder, name)));
  }
  return files;
}

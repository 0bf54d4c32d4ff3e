// The gallery as it is put into the site: plain files, and hls.js as its package ships it.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { installDir } from '../lib/install.ts';

const folder = join(installDir, 'src/catalogue/gallery');
const own = ['index.html', 'gallery.css', 'gallery.js', 'player.js', 'text.js', 'icon.svg'];

const player = () => createRequire(import.meta.url).resolve('hls.js/dist/hls.min.js');

/** The files that the gallery is made of, where they are installed. */
export const gallerySources = () => [player(), ...own.map((name) => join(folder, name))];

/** Path in the site → bytes. Everything but the page itself lies under `gallery/`. */
export async function galleryFiles(): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>();
  // The source map it names is not published.
  const script = (await readFile(player(), 'utf8')).replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n');
  files.set('gallery/hls.min.js', Buffer.from(script));
  for (const name of own) {
    files.set(name === 'index.html' ? name : `gallery/${name}`, await readFile(join(folder, name)));
  }
  return files;
}

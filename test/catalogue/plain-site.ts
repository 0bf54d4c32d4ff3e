import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { compressedForms } from '../../src/catalogue/site-texts.ts';

export const documentText = JSON.stringify({ version: 2, text: 'x'.repeat(3000) });
export const film = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i % 251));

/** A site as the servers see one, made by hand; beside it and in it what must never be served. */
export async function makeSite(folder: string): Promise<string> {
  const site = join(folder, 'site');
  await mkdir(join(site, 'api'), { recursive: true });
  await mkdir(join(site, 'media/a/hls'), { recursive: true });
  await mkdir(join(site, 'gallery'));
  const put = (path: string, bytes: string | Buffer) => writeFile(join(site, path), bytes);
  const putText = async (path: string, text: string) => {
    await put(path, text);
    for (const { suffix, bytes } of await compressedForms(Buffer.from(text))) await put(path + suffix, bytes);
  };
  await put('health.txt', 'ok\n');
  await putText('index.html', `<!doctype html><title>${'x'.repeat(300)}</title>`);
  await putText('gallery/gallery.js', `export {}; // ${'x'.repeat(300)}`);
  await putText('api/streams.json', documentText);
  await putText('media/SHA256SUMS', `${'a'.repeat(64)}  a/film.mp4\n`.repeat(20));
  await put('media/a/film.mp4', film);
  await putText('media/a/hls/main.m3u8', '#EXTM3U\n'.repeat(50));
  await put('media/a/hls/00001.m4s', 'x');
  await putText('media/a/thumbs.vtt', 'WEBVTT\n'.repeat(50));
  await put('media/a/poster.jpg', 'jpeg');
  await put('media/.hidden', 'secret');
  await writeFile(join(folder, 'outside.txt'), 'secret');
  await symlink(join(folder, 'outside.txt'), join(site, 'media/link.txt'));
  await symlink(folder, join(site, 'media/up'));
  return site;
}

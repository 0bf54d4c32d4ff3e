// A catalogue of 1,000 published streams without encoding 1,000 videos: the ledger, the files and the document are written
// as a publish would have left them, from one stream that really was encoded.
import { link, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { PublishLine } from '../../src/catalogue/ledger.ts';
import type { SitePaths } from '../../src/catalogue/site-paths.ts';

export async function multiply(paths: SitePaths, folder: string, count: number): Promise<void> {
  const line = JSON.parse((await readFile(paths.ledger, 'utf8')).split('\n')[0]!) as PublishLine;
  const { id } = line;
  const lines: string[] = [];
  const entries: string[] = [];
  for (let i = 0; i < count; i++) {
    const next = `${id}-${i}`;
    const renamed = JSON.parse(JSON.stringify(line).replaceAll(`media/${id}/`, `media/${next}/`)) as PublishLine;
    for (const path of Object.keys(line.files)) {
      const target = join(paths.site, path.replace(`media/${id}/`, `media/${next}/`));
      await mkdir(dirname(target), { recursive: true });
      await link(join(paths.site, path), target);
    }
    await link(join(folder, 'film.mp4'), join(folder, `${next}.mp4`));
    lines.push(JSON.stringify({ ...renamed, id: next }));
    entries.push(`  - { id: ${next}, title: Film ${i}, source: ${next}.mp4, progressive: [180p, 360p], hls: yes }\n`);
  }
  await writeFile(paths.ledger, `${await readFile(paths.ledger, 'utf8')}${lines.join('\n')}\n`);
  const manifest = await readFile(join(folder, 'catalogue.yaml'), 'utf8');
  await writeFile(join(folder, 'catalogue.yaml'), manifest + entries.join(''));
}

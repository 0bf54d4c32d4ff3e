// npm run bench -- api | catalogue | …: each prints ratios measured side by side in one run.
import { globSync } from 'node:fs';
import { basename } from 'node:path';

const names = globSync('*.ts', { cwd: import.meta.dirname })
  .map((file) => basename(file, '.ts'))
  .filter((name) => name !== 'main')
  .sort();
const name = process.argv[2] ?? '';
if (!names.includes(name)) {
  console.error(`usage: npm run bench -- ${names.join(' | ')}`);
  process.exit(2);
}
await import(`./${name}.ts`);

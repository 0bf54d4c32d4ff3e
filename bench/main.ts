// npm run bench -- api router … [part …]: each prints ratios measured side by side in one run. Several benchmarks run one
// after another, each in a process of its own; the words after their names choose parts of a benchmark.
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { basename } from 'node:path';

const names = globSync('*.ts', { cwd: import.meta.dirname })
  .map((file) => basename(file, '.ts'))
  .filter((name) => name !== 'main')
  .sort();
const words = process.argv.slice(2);
const chosen = words.filter((word) => names.includes(word));
const parts = words.filter((word) => !names.includes(word));
if (chosen.length === 0) {
  console.error(`usage: npm run bench -- ${names.join(' | ')}`);
  process.exit(2);
}
if (chosen.length === 1) await import(`./${chosen[0]}.ts`);
else {
  for (const name of chosen) {
    console.log(`— ${name}`);
    const { status } = spawnSync(process.execPath, [import.meta.filename, name, ...parts], { stdio: 'inherit' });
    if (status !== 0) process.exitCode = 1;
  }
}

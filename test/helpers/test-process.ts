// What a test process runs (scripts/test.ts starts it): a few test files one after another, each as a suite of its own.
// They share what has been loaded. Hooks at the top of a file run for that file alone. After each file comes a line for the
// runner: the processor time that the file took.
import { readFileSync } from 'node:fs';
import { after, describe } from 'node:test';
import { pathToFileURL } from 'node:url';
import './at-end.ts';

/** Clock ticks of this process and of the children that it has waited for: fields 14 to 17 of proc_pid_stat(5). */
function ticksSoFar(): number {
  const afterName = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)!.split(' ');
  return afterName.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0);
}
const ticksPerSecond = 100;
let counted = 0;

const { files, env } = JSON.parse(process.argv[2]!) as { files: string[]; env: Record<string, string> };
Object.assign(process.env, env);
for (const file of files) {
  // One after another: what two of them import waits for the first, and their tests would all become those of its suite.
  const isLoaded = Promise.withResolvers<void>();
  describe(file, async () => {
    await import(pathToFileURL(file).href).finally(isLoaded.resolve);
    after(() => {
      const ticks = ticksSoFar();
      console.log(`processor time of ${file}: ${(ticks - counted) / ticksPerSecond}`);
      counted = ticks;
    });
  });
  await isLoaded.promise;
}

// The entry of the control process, which the supervisor starts.
import { createRequire, enableCompileCache } from 'node:module';

enableCompileCache();
try {
  // Loaded in one go and not file by file, which is what the time of a start goes into.
  const { run } = createRequire(import.meta.url)('./run.ts') as typeof import('./run.ts');
  await run(process.env, process.stdout.isTTY === true);
} catch (error) {
  process.send?.({ failed: String((error as Error).message).split('\n', 1)[0] });
  throw error;
}

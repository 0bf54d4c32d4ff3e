// environment → config → app → signals. The only reader of process.env in the service.
import { createRequire, enableCompileCache } from 'node:module';

enableCompileCache();
// Loaded in one go and not file by file, which is what the time of a start goes into.
const { run } = createRequire(import.meta.url)('./run.ts') as typeof import('./run.ts');
await run(process.env, process.stdout.isTTY === true);

// The entry of the service: the supervisor, which starts everything else.
import { createRequire, enableCompileCache } from 'node:module';

enableCompileCache();
// Loaded in one go and not file by file, which is what the time of a start goes into.
const load = createRequire(import.meta.url);
const { supervise } = load('./supervisor/supervise.ts') as typeof import('./supervisor/supervise.ts');
process.exit(await supervise(process.env, process.stdout.isTTY === true));

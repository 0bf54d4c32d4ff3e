// The entry of the service: the supervisor, which starts everything else.
import { enableCompileCache } from 'node:module';

enableCompileCache();
const { supervise } = await import('./supervisor/supervise.ts');
process.exit(await supervise(process.env, process.stdout.isTTY === true));

// environment → config → app → signals. The only reader of process.env in the service.
import { enableCompileCache } from 'node:module';

enableCompileCache();
const { run } = await import('./run.ts');
await run(process.env, process.stdout.isTTY === true);

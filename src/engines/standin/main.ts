// The entry of the process that the stand-in's instances run in. Its argument is the data directory it belongs to.
import { enableCompileCache } from 'node:module';

enableCompileCache();
const { serveStandin } = await import('./server.ts');
await serveStandin(process.argv[2]!, () => process.exit(0));

// What `npm start` runs. It is JavaScript, so that nothing has to be compiled before the cache of compiled files is in use:
// the compiler alone takes as much memory as the rest of the supervisor, and keeps it.
import { enableCompileCache } from 'node:module';

enableCompileCache();
await import('../src/main.ts');

// The entry of the process that the stand-in's instances run in. Its argument is the data directory it belongs to.
import '../../lib/source-stacks.ts';
import { serveStandin } from './standin-server.ts';

await serveStandin(process.argv[2]!, () => process.exit(0));

// The catalogue's command line as its own process, without the rest of `sluice`.
import { run } from '../../src/cli/commands/catalogue.ts';

process.exitCode = await run(process.argv.slice(2));

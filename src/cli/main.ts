// sluice COMMAND, as a process.
import '../lib/source-stacks.ts';
import { exit, processIo } from './io.ts';
import { runCli } from './run-cli.ts';

// The reader of a pipe may stop reading: `sluice events -f | head -1`.
process.stdout.on('error', (error: NodeJS.ErrnoException) =>
  process.exit(error.code === 'EPIPE' ? exit.done : exit.failed),
);

process.exitCode = await runCli(process.argv.slice(2), processIo);

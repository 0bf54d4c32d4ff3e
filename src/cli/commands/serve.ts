// sluice serve and reload: the service on this machine. reload talks to the supervisor over its socket in the data
// directory, not to the API.
import { resolve } from 'node:path';
import { type Command, verb } from '../frame/command.ts';
import { CliError, exit } from '../io.ts';

/** Returns once the service has ended. */
export const serve: Command = {
  verbs: {
    '': verb({
      about: 'run the service, with settings from the environment',
      async run({ io }) {
        const { supervise } = await import('../../supervisor/supervise.ts');
        return supervise(io.env, io.stdout.isTTY === true);
      },
    }),
  },
  notes: 'Settings: docs/settings.md. SIGTERM and Ctrl-C stop it gracefully; a second one at once.',
  examples: ['sluice serve', 'SLUICE_PORT=9000 SLUICE_DATA_DIR=/srv/sluice sluice serve'],
};

export const reload: Command = {
  verbs: {
    '': verb({
      about: 'replace the processes of the service on this machine by what is on disk now, without refusing a request',
      async run({ io, out }) {
        const { askToReload } = await import('../../supervisor/supervisor-socket.ts');
        const dir = resolve(io.cwd, io.env.SLUICE_DATA_DIR || 'data');
        const outcome = await askToReload(dir);
        if (outcome === null)
          throw new CliError(
            exit.unreachable,
            `No service runs on the data directory ${dir}.`,
            'Set SLUICE_DATA_DIR to that of the service, or start one: sluice serve',
          );
        if (!outcome.ok) throw new CliError(exit.failed, outcome.message, 'The log of the service says more.');
        out.note(outcome.message);
        return exit.done;
      },
    }),
  },
  notes:
    'Found by SLUICE_DATA_DIR (default: ./data). It waits until the new processes are ready; requests in progress finish in the old ones.',
  examples: ['sluice reload', 'SLUICE_DATA_DIR=/srv/sluice sluice reload'],
};

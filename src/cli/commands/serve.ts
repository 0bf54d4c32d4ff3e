import { type Command, verb } from '../frame/command.ts';

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
  notes: 'Settings: docs/settings.md. SIGTERM and Ctrl-C stop it in order; a second one at once.',
  examples: ['sluice serve', 'SLUICE_PORT=9000 SLUICE_DATA_DIR=/srv/sluice sluice serve'],
};

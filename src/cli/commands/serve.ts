import { type Command, verb } from '../frame/command.ts';

/** Returns once the service listens; the process then lives until a signal stops it. */
export const command: Command = {
  verbs: {
    '': verb({
      about: 'run the service, with settings from the environment',
      async run({ io }) {
        const { run } = await import('../../run.ts');
        await run(io.env, io.stdout.isTTY === true);
        return Number(process.exitCode ?? 0);
      },
    }),
  },
  notes: 'Settings: docs/settings.md. SIGTERM and Ctrl-C stop it in order; a second one at once.',
  examples: ['sluice serve', 'SLUICE_PORT=9000 SLUICE_DATA_DIR=/srv/sluice sluice serve'],
};

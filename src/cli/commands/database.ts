// sluice database move: works on the databases directly, while the service is stopped.
import { StartError } from '../../lib/start-error.ts';
import { type Command, verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import { noteWait } from './account.ts';

export const database: Command = {
  verbs: {
    move: verb({
      about: 'copy everything from the SQLite of the data directory to the PostgreSQL of SLUICE_DATABASE_URL',
      async run(context) {
        const { readConfig } = await import('../../config.ts');
        const { copyDatabase } = await import('../../db/copy-to-postgres.ts');
        const { lockDataDir, openStore } = await import('../../store.ts');
        const target = readConfig(context.io.env, false);
        if (target.databaseUrl === null)
          throw new StartError('SLUICE_DATABASE_URL has to name the PostgreSQL to move to.');
        const lock = lockDataDir(target.dataDir);
        try {
          const from = await openStore({ ...target, databaseUrl: null }, () => {}, noteWait(context.out));
          const to = await openStore(target, () => {}, noteWait(context.out)).catch(async (error) => {
            await from.close();
            throw error;
          });
          const copied = await copyDatabase(from.db, to.db).finally(() => Promise.all([from.close(), to.close()]));
          context.out.list(
            copied.filter(({ rows }) => rows > 0),
            [
              { title: 'TABLE', of: ({ table }) => table },
              { title: 'ROWS', of: ({ rows }) => rows, right: true },
            ],
            'There was nothing to copy.',
          );
          context.out.note('From now on start the service with SLUICE_DATABASE_URL. The SQLite database is as it was.');
          return exit.done;
        } finally {
          lock.release();
        }
      },
    }),
  },
  notes:
    'Stop the service first. The target has to be new; it gets everything in one transaction, or\nnothing. Keep secret.key, or set SLUICE_SECRET_KEY to it: what is encrypted stays so.',
  examples: ['SLUICE_DATABASE_URL=postgres://sluice@db.example/sluice sluice database move'],
};

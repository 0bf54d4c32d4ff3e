// sluice migrate: works on the database directly, before the service of a new version starts.
import { type Command, verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import { noteWait } from './account.ts';

export const migrate: Command = {
  verbs: {
    '': verb({
      about: 'bring the database to the version of this Sluice, as the next start would',
      async run({ io, out }) {
        const { readConfig } = await import('../../config.ts');
        const { migrateStore } = await import('../../store.ts');
        const migrated = await migrateStore(readConfig(io.env, false), noteWait(out));
        const { from, to, applied } = migrated;
        out.result(migrated, () => {
          for (const [index, name] of applied.entries()) out.line(`${from + index + 1}  ${name}`);
          out.line(
            applied.length === 0 ? `The database is at version ${to} already.` : `The database is at version ${to}.`,
          );
        });
        return exit.done;
      },
    }),
  },
  notes:
    'Works on the database of the settings in the environment: PostgreSQL, on a connection of its own and without a\ntime limit, or SQLite, while no service runs on it. All of it is one transaction.',
  examples: ['sluice migrate', 'SLUICE_DATABASE_URL=postgres://sluice@db.example/sluice sluice migrate'],
};

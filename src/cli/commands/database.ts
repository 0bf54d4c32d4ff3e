// sluice account, token, migrate and database: they work on the database directly, on the machine that has its
// settings, and need no token. What opens a database is loaded only when a verb runs.

import { type Scope, scopes } from '../../contract/scopes.ts';
import type { Db } from '../../db/database.ts';
import { StartError } from '../../lib/start-error.ts';
import type { Store } from '../../store.ts';
import { type Command, type CommandContext, verb } from '../frame/command.ts';
import { exit, UsageError } from '../io.ts';
import type { Output } from '../terminal/output.ts';

/** Says why nothing happens for a while. */
const noteWait = (out: Output) => () => out.note('Another process is working on the database. Waiting for it…');

/** The database is loaded and opened only where it is needed. */
async function withStore<T>({ io, out }: CommandContext, task: (store: Store) => Promise<T>): Promise<T> {
  const { readConfig } = await import('../../config.ts');
  const { openStore } = await import('../../store.ts');
  const store = await openStore(readConfig(io.env, false), () => {}, noteWait(out));
  try {
    return await task(store);
  } finally {
    await store.close();
  }
}

export const account: Command = {
  verbs: {
    create: verb({
      about: 'create an account, with a token that has all rights in it',
      args: 'NAME',
      async run(context) {
        const name = context.args[0]!;
        const { systemClock: clock } = await import('../../lib/clock.ts');
        const { createIds } = await import('../../lib/ids.ts');
        const { insertAccount } = await import('../../tokens/admin-token.ts');
        const { createToken } = await import('../../tokens/create-token.ts');
        const ids = createIds(clock);
        const made = await withStore(context, ({ db }) =>
          db.transaction().execute(async (tx) => {
            const accountId = await insertAccount(tx, ids, name, clock.now());
            const token = await createToken(tx, { ids, clock }, { accountId, name: 'first', scopes: ['*'] });
            return { id: accountId, name, token: token.secret };
          }),
        );
        context.out.result(made, () => {
          context.out.line(`account ${made.id}`);
          context.out.line(`token   ${made.token}   (shown this once)`);
        });
        return exit.done;
      },
    }),
    list: verb({
      about: 'list accounts',
      async run(context) {
        const { listAccounts } = await import('../../tokens/admin-token.ts');
        const accounts = await withStore(context, ({ db }) => listAccounts(db));
        context.out.result(accounts, () => {
          for (const { id, name } of accounts) context.out.line(`${id}  ${name}`);
        });
        return exit.done;
      },
    }),
  },
  notes: 'Uses the database of the settings in the environment, not the API.',
  examples: ['sluice account create "Team Blue"', 'sluice account list'],
};

async function chooseAccount(db: Db, id: string | undefined): Promise<string> {
  const { findAccount, listAccounts } = await import('../../tokens/admin-token.ts');
  const account = id === undefined ? (await listAccounts(db))[0] : await findAccount(db, id);
  if (account) return account.id;
  throw new UsageError(
    id === undefined ? 'There is no account yet: sluice account create NAME' : `There is no account ${id}.`,
  );
}

/** For the day when no token is left. */
export const token: Command = {
  verbs: {
    create: verb({
      about: 'create a token without having one',
      args: 'NAME',
      options: {
        account: { type: 'string', value: 'ID', about: 'whose (default: the first account)' },
        scope: { type: 'string', multiple: true, value: 'S', choices: scopes, about: 'what it may do (default: *)' },
        days: { type: 'string', value: 'N', about: 'days until it expires (default: never)' },
      },
      async run(context) {
        const days = context.whole('days', 1, 99_999);
        const wanted = context.texts('scope') as Scope[];
        const { systemClock: clock } = await import('../../lib/clock.ts');
        const { createIds } = await import('../../lib/ids.ts');
        const { createToken } = await import('../../tokens/create-token.ts');
        const made = await withStore(context, async ({ db }) => {
          const accountId = await chooseAccount(db, context.text('account'));
          const token = {
            accountId,
            name: context.args[0]!,
            scopes: wanted.length > 0 ? wanted : (['*'] satisfies Scope[]),
            expiresAt: days === undefined ? null : clock.now() + days * 86_400_000,
          };
          const parts = { ids: createIds(clock), clock };
          const { row, secret } = await db.transaction().execute((tx) => createToken(tx, parts, token));
          return { id: row.id, account_id: accountId, token: secret };
        });
        context.out.result(made, () => {
          context.out.line(`token ${made.id} of account ${made.account_id}`);
          context.out.line(`${made.token}   (shown this once)`);
        });
        return exit.done;
      },
    }),
  },
  notes: 'Uses the database of the settings in the environment. Through the API: sluice tokens.',
  examples: ['sluice token create rescue', 'sluice token create ci --scope deployments:write --days 90'],
};

/** For the time before the service of a new version starts. */
export const migrate: Command = {
  verbs: {
    '': verb({
      about: 'migrate the database to this version, as the next start would',
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

/** While the service is stopped. */
export const database: Command = {
  verbs: {
    move: verb({
      about: 'copy everything from the SQLite of the data directory to the PostgreSQL of SLUICE_DATABASE_URL',
      async run(context) {
        const { readConfig } = await import('../../config.ts');
        const { copyDatabase } = await import('../../db/copy-database.ts');
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
    'Stop the service first. The target has to be new; it gets everything in one transaction, or\nnothing. Keep secret.key, or set SLUICE_SECRET_KEY to it: encrypted values stay encrypted.',
  examples: ['SLUICE_DATABASE_URL=postgres://sluice@db.example/sluice sluice database move'],
};

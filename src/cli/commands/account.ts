// sluice account create | list: works on the database directly, on the machine that has its settings.
import type { Store } from '../../store.ts';
import type { Command, CommandContext } from '../frame/command.ts';
import { verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import type { Output } from '../terminal/output.ts';

/** Tells why nothing happens for a while. */
export const noteWait = (out: Output) => () => out.note('Another process is working on the database. Waiting for it…');

/** The database is loaded and opened only where it is needed. */
export async function withStore<T>({ io, out }: CommandContext, task: (store: Store) => Promise<T>): Promise<T> {
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
      about: 'create an account, with a token that may do everything in it',
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
  notes: 'Works on the database of the settings in the environment, not through the API.',
  examples: ['sluice account create "Team Blue"', 'sluice account list'],
};

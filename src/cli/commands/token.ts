// sluice token create: works on the database directly, for the day when no token is left.
import { type Scope, scopes } from '../../contract/scopes.ts';
import type { Db } from '../../db/database.ts';
import { type Command, verb } from '../frame/command.ts';
import { exit, UsageError } from '../io.ts';
import { withStore } from './account.ts';

async function chooseAccount(db: Db, id: string | undefined): Promise<string> {
  const { findAccount, listAccounts } = await import('../../tokens/admin-token.ts');
  const account = id === undefined ? (await listAccounts(db))[0] : await findAccount(db, id);
  if (account) return account.id;
  throw new UsageError(
    id === undefined ? 'There is no account yet: sluice account create NAME' : `There is no account ${id}.`,
  );
}

export const token: Command = {
  verbs: {
    create: verb({
      about: 'create a token without having one',
      args: 'NAME',
      options: {
        account: { type: 'string', value: 'ID', about: 'whose (default: the first account)' },
        scope: { type: 'string', multiple: true, value: 'S', choices: scopes, about: 'what it may do (default: *)' },
        days: { type: 'string', value: 'N', about: 'valid for so long (default: for ever)' },
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
  notes: 'Works on the database of the settings in the environment; through the API: sluice tokens.',
  examples: ['sluice token create rescue', 'sluice token create ci --scope deployments:write --days 90'],
};

// sluice account create | list: works on the database directly, on the machine that has its settings.
import { parseArgs } from 'node:util';
import { insertAccount, listAccounts } from '../accounts/queries.ts';
import { readConfig } from '../config.ts';
import { systemClock } from '../lib/clock.ts';
import { createIds } from '../lib/ids.ts';
import { openStore } from '../store.ts';
import { makeToken } from '../tokens/make.ts';
import { type Io, processIo, UsageError } from './io.ts';

export const help = `sluice account create NAME [--json]   a new account with a token that may do everything in it
sluice account list [--json]          ids and names`;

export async function run(args: string[], { env, print }: Io = processIo): Promise<number> {
  const { positionals, values } = parseArgs({ args, allowPositionals: true, options: { json: { type: 'boolean' } } });
  const [verb, name, ...rest] = positionals;
  if (rest.length > 0 || (verb === 'create') !== (name !== undefined) || !['create', 'list'].includes(verb ?? '')) {
    throw new UsageError(help);
  }
  const store = await openStore(readConfig(env, false), () => {});
  try {
    if (verb === 'list') {
      const accounts = await listAccounts(store.db);
      if (values.json) print(JSON.stringify(accounts));
      else for (const account of accounts) print(`${account.id}  ${account.name}`);
      return 0;
    }
    const ids = createIds(systemClock);
    const made = await store.db.transaction().execute(async (tx) => {
      const accountId = await insertAccount(tx, ids, name!, systemClock.now());
      const token = await makeToken(tx, { ids, clock: systemClock }, { accountId, name: 'first', scopes: ['*'] });
      return { id: accountId, name: name!, token: token.secret };
    });
    if (values.json) print(JSON.stringify(made));
    else print(`account ${made.id}\ntoken   ${made.token}   (shown this once)`);
    return 0;
  } finally {
    await store.close();
  }
}

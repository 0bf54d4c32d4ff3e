// sluice token create: works on the database directly, for the day when no token is left.
import { parseArgs } from 'node:util';
import { findAccount, listAccounts } from '../accounts/queries.ts';
import { readConfig } from '../config.ts';
import { type Scope, scopes } from '../contract/scopes.ts';
import type { Db } from '../db/database.ts';
import { systemClock } from '../lib/clock.ts';
import { createIds } from '../lib/ids.ts';
import { openStore } from '../store.ts';
import { makeToken } from '../tokens/make.ts';
import { type Io, processIo, UsageError } from './io.ts';

export const help = `sluice token create NAME [--account ID] [--scope SCOPE]… [--days N] [--json]
    a new token of the account (default: the first one), with the scopes (default: *), for N days (default: for ever)`;

const options = {
  account: { type: 'string' },
  scope: { type: 'string', multiple: true },
  days: { type: 'string' },
  json: { type: 'boolean' },
} as const;

export async function run(args: string[], { env, print }: Io = processIo): Promise<number> {
  const { positionals, values } = parseArgs({ args, allowPositionals: true, options });
  const [verb, name, ...rest] = positionals;
  if (verb !== 'create' || name === undefined || rest.length > 0) throw new UsageError(help);
  const wanted = values.scope ?? ['*'];
  const unknown = wanted.find((scope) => !scopes.includes(scope as Scope));
  if (unknown !== undefined) throw new UsageError(`There is no scope ${unknown}. Scopes: ${scopes.join(' ')}`);
  const expiresAt = values.days === undefined ? null : systemClock.now() + readDays(values.days) * 86_400_000;

  const store = await openStore(readConfig(env, false), () => {});
  try {
    const accountId = await chooseAccount(store.db, values.account);
    const ids = createIds(systemClock);
    const made = await store.db
      .transaction()
      .execute((tx) =>
        makeToken(tx, { ids, clock: systemClock }, { accountId, name, scopes: wanted as Scope[], expiresAt }),
      );
    const shown = { id: made.row.id, account_id: accountId, token: made.secret };
    if (values.json) print(JSON.stringify(shown));
    else print(`token ${shown.id} of account ${accountId}\n${made.secret}   (shown this once)`);
    return 0;
  } finally {
    await store.close();
  }
}

function readDays(text: string): number {
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new UsageError('--days takes a whole number from 1 to 99999');
  return Number(text);
}

async function chooseAccount(db: Db, id: string | undefined): Promise<string> {
  const account = id === undefined ? (await listAccounts(db))[0] : await findAccount(db, id);
  if (account) return account.id;
  throw new UsageError(
    id === undefined ? 'There is no account yet: sluice account create NAME' : `There is no account ${id}`,
  );
}

// What was there before tokens had parents and hostnames had to be proved goes on as it was.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { readConfig } from '../../../src/config.ts';
import type { AnyDb } from '../../../src/db/dialect.ts';
import { migrate, migrations } from '../../../src/db/migrate.ts';
import { openDatabase } from '../../../src/db/open-database.ts';
import { isolatedEnv } from '../../helpers/app.ts';

const isolated = await isolatedEnv({ isMigrated: false });
after(() => isolated.clean());

async function insertOldRows(db: AnyDb): Promise<void> {
  const times = { created_at: 1, updated_at: 1, version: 1 };
  await db.insertInto('account').values({ id: 'acc_1', name: 'a', created_at: 1 }).execute();
  const token = { id: 'tok_1', account_id: 'acc_1', kind: 'user', name: 'x', hash: 'h', scopes: '["*"]', bound: 0 };
  await db
    .insertInto('token')
    .values({ ...token, created_at: 1, version: 1 })
    .execute();
  const project = { id: 'prj_1', account_id: 'acc_1', name: 'p', slug: 'p', labels: '[]', ...times };
  await db.insertInto('project').values(project).execute();
  const json = { variable_names: '[]', health_check: '{}', canary: '{}' };
  const numbers = { replicas: 1, port: 8080, auto_rollback: 1, retention: 10, drain_s: 1 };
  await db
    .insertInto('environment')
    .values({ project_id: 'prj_1', name: 'production', region: 'local', host: 'p', ...json, ...numbers, ...times })
    .execute();
  const domain = { account_id: 'acc_1', project_id: 'prj_1', environment: 'production', failures: 0, renew_asked: 0 };
  for (const [id, hostname, state, certificate_id] of [
    ['dom_1', 'served.example.com', 'active', 'crt_1'],
    ['dom_2', 'claimed.example.com', 'failed', null],
  ])
    await db
      .insertInto('domain')
      .values({ id, hostname, state, certificate_id, lease_until: 0, ...domain, ...times })
      .execute();
}

test('a domain that serves a certificate stays routed, one that never got any has to be proved; tokens have no parent', async () => {
  const { databaseUrl, dataDir } = readConfig(isolated.env, false);
  const { db, dialect, close } = await openDatabase({ url: databaseUrl, dataDir, onConnectionLost: () => {} });
  try {
    const before = migrations.slice(
      0,
      migrations.findIndex(({ name }) => name === 'identity'),
    );
    await migrate(db, dialect, { known: before });
    await insertOldRows(db);
    await migrate(db, dialect);
    const domains = await db.selectFrom('domain').select(['hostname', 'proof']).orderBy('id').execute();
    assert.deepEqual(
      domains.map((row) => ({ ...row })),
      [
        { hostname: 'served.example.com', proof: 'earlier' },
        { hostname: 'claimed.example.com', proof: null },
      ],
    );
    assert.equal((await db.selectFrom('token').select('parent_id').executeTakeFirstOrThrow()).parent_id, null);
  } finally {
    await close();
  }
});

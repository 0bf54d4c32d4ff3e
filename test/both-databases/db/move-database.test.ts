// From SQLite to PostgreSQL: what was there before is there afterwards, and goes on.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { call, isolatedEnv, onPostgres } from '../../helpers/app.ts';
import { cli } from '../../helpers/cli.ts';
import { startService } from '../../helpers/service.ts';
import { Shop } from '../../helpers/shop.ts';

/** Every list a user can read, whole. */
async function readAll(url: string, project: string) {
  const paths = [
    '/projects',
    `/projects/${project}/environments`,
    `/projects/${project}/deployments`,
    `/projects/${project}/environments/production/revisions`,
    `/projects/${project}/alert-rules`,
    '/webhooks',
    '/events',
    '/tokens',
    '/audit-log',
  ];
  const lists: Record<string, string> = {};
  for (const path of paths) {
    const { status, body } = await call(url, 'GET', `/v1${path}`);
    assert.equal(status, 200, path);
    // Where it answers, when it was last used, how deliveries go and which instances run depend on the run.
    const varying = /"(?:(?:url|last_used_at|failing_since|probe_at)":(?:"[^"]*"|null)|health":\{[^}]*\}),?/g;
    lists[path] = JSON.stringify(body.data).replaceAll(varying, '');
  }
  return lists;
}

if (onPostgres) {
  test('an installation moves with all it has', async () => {
    const isolated = await isolatedEnv();
    const { SLUICE_DATABASE_URL: _, ...sqlite } = isolated.env;
    try {
      const before = startService(sqlite);
      const oldUrl = await before.url;
      const shop = await Shop.open(oldUrl, { variables: { COLOUR: 'blue' } });
      await shop.released('registry.example/shop:1');
      await call(oldUrl, 'POST', '/v1/webhooks', { body: { url: 'http://127.0.0.1:9/', events: ['*'] } });
      const lists = await readAll(oldUrl, shop.project);
      before.child.kill('SIGTERM');
      await before.exited;

      const copied = await cli(['database', 'move', '--json'], isolated.env);
      assert.equal(copied.code, 0, copied.stderr);
      assert.ok(JSON.parse(copied.stdout).some((of: { table: string }) => of.table === 'revision'));
      const again = await cli(['database', 'move'], isolated.env);
      assert.equal(again.code, 78);
      assert.match(again.stderr, /already has accounts/);

      const after = startService(isolated.env);
      const newUrl = await after.url;
      assert.deepEqual(await readAll(newUrl, shop.project), lists);
      const moved = await Shop.at(newUrl, shop.project);
      await moved.released('registry.example/shop:2');
      assert.equal((await moved.visit()).revision, 'r2');
      after.child.kill('SIGTERM');
      await after.exited;
    } finally {
      await isolated.clean();
    }
  });
}

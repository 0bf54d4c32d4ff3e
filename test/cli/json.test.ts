// What --json prints is what docs/cli.md promises: resources exactly as the API returns them, lists without their envelope.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cli, envOf } from '../helpers/cli.ts';
import { sharedApp } from '../helpers/shared-app.ts';
import { Shop } from '../helpers/shop.ts';

const t = sharedApp();

test('every command that reads prints what the API answers', async () => {
  const shop = await Shop.open(t.url, {});
  const env = { ...envOf(t.url), SLUICE_PROJECT: shop.project };
  const first = await shop.released('shop:1');
  await shop.released('shop:2');
  await t.call('POST', '/v1/webhooks', { body: { url: 'http://127.0.0.1:9/hook' } });
  const printed = async (args: string[]) => {
    const { code, stdout, stderr } = await cli([...args, '--json'], env);
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
    return JSON.parse(stdout);
  };
  const P = `/v1/projects/${shop.project}`;
  const E = `${P}/environments/production`;
  const lists: [string[], string][] = [
    [['projects'], '/v1/projects'],
    [['environments'], `${P}/environments`],
    [['deployments'], `${P}/deployments`],
    [['revisions'], `${E}/revisions`],
    [['ps'], `${E}/instances`],
    [['domains'], `${P}/domains`],
    [['alerts'], `${P}/alerts`],
    [['alerts', 'rules'], `${P}/alert-rules`],
    [['webhooks'], '/v1/webhooks'],
    [['events'], `/v1/events?project_id=${shop.project}`],
    [['tokens'], '/v1/tokens'],
    [['registries'], '/v1/registries'],
    [['regions'], '/v1/regions'],
    [['audit'], `/v1/audit-log?project_id=${shop.project}`],
  ];
  for (const [args, path] of lists) {
    const shown = await printed(args);
    assert.deepEqual(withoutMoments(shown), withoutMoments((await t.call('GET', path)).body.data), args.join(' '));
  }
  const single: [string[], string][] = [
    [['projects', 'show'], P],
    [['env', 'show'], E],
    [['deployments', 'show', 'r1'], `${P}/deployments/${first.id}`],
    [['diff', 'r1', 'r2'], `${E}/revisions/r2/changes?from=r1`],
    [['tokens', 'current'], '/v1/token'],
  ];
  for (const [args, path] of single)
    assert.deepEqual(
      withoutMoments(await printed(args)),
      withoutMoments((await t.call('GET', path)).body),
      args.join(' '),
    );
  const [row] = await printed(['status']);
  assert.deepEqual(Object.keys(row).sort(), ['environment', 'image', 'project', 'state']);
  assert.deepEqual(Object.keys(await printed(['metrics'])).sort(), ['environment', 'from', 'series', 'step_s', 'to']);
  assert.deepEqual(Object.keys(await printed(['open'])), ['url']);
  const created = await printed(['deploy', 'shop:3', '--detach']);
  assert.deepEqual([created.state, created.revision], ['queued', 'r3']);
});

/** What goes on meanwhile: checks of instances and regions, and the use of the token that asks. */
function withoutMoments(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (name, item) =>
      ['last_check', 'last_checked_at', 'last_used_at'].includes(name) ? null : item,
    ),
  );
}

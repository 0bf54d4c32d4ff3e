// Alert rules, alerts and domains from the command line.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cli, envOf } from '../helpers/cli.ts';
import { sharedApp } from '../helpers/shared-app.ts';

let env: Record<string, string>;
const t = sharedApp({}, async () => {
  env = envOf(t.url);
  await cli(['projects', 'create', 'Shop'], env);
});

test('alert rules: add, list, change, disable, remove', async () => {
  const added = await cli(
    ['alerts', 'add', 'slow', 'p95_ms', '--above', '800', '--for', '60', '--on-canary', 'abort', '--json'],
    env,
  );
  assert.equal(added.code, 0, added.stderr);
  const rule = JSON.parse(added.stdout);
  assert.deepEqual([rule.comparator, rule.threshold, rule.for_s, rule.on_canary], ['gt', 800, 60, 'abort']);
  const rules = await cli(['alerts', 'rules'], env);
  assert.match(rules.stdout, /^slow +production +p95_ms > 800 over 60 s, for 60 s +warning +abort +yes/m);
  const changed = await cli(['alerts', 'change', 'slow', '--below', '5', '--severity', 'critical', '--json'], env);
  assert.deepEqual([JSON.parse(changed.stdout).comparator, JSON.parse(changed.stdout).severity], ['lt', 'critical']);
  assert.match((await cli(['alerts', 'disable', rule.id], env)).stdout, /\(disabled\)/);
  assert.equal((await cli(['alerts', 'enable', 'slow'], env)).code, 0);
  assert.equal((await cli(['alerts', 'remove', 'slow'], env)).code, 0);
  const gone = await cli(['alerts', 'remove', 'slow'], env);
  assert.equal(gone.code, 3);
  assert.equal((await cli(['alerts', 'add', 'x', 'p59_ms', '--above', '1'], env)).code, 2);
  assert.equal((await cli(['alerts', 'add', 'x', 'p95_ms', '--above', '1', '--below', '2'], env)).code, 2);
});

test('alerts: none yet, as a list that is empty', async () => {
  const { code, stdout } = await cli(['alerts', '--state', 'firing', '--json'], env);
  assert.deepEqual([code, JSON.parse(stdout)], [0, []]);
});

test('domains: add, list, show, remove', async () => {
  const added = await cli(['domains', 'add', 'shop.example', '--json'], env);
  assert.equal(added.code, 0, added.stderr);
  assert.deepEqual(
    [JSON.parse(added.stdout).hostname, JSON.parse(added.stdout).environment],
    ['shop.example', 'production'],
  );
  assert.match((await cli(['domains'], env)).stdout, /^shop\.example +(pending|issuing|active) +production/m);
  assert.match(
    (await cli(['domains', 'show', 'SHOP.example'], env)).stdout,
    /^shop\.example {2}\w+, leads to production/,
  );
  assert.match((await cli(['domains', 'show', 'shop.exampel'], env)).stderr, /Did you mean shop\.example\?/);
  assert.equal((await cli(['domains', 'add', 'shop.example'], env)).code, 1);
  assert.equal((await cli(['domains', 'remove', 'shop.example'], env)).stdout, 'shop.example is removed\n');
});

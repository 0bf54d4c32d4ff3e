// What people type every day: links, short names of deployments, differences, metrics, secrets, and what errors say.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { cli, envOf, onTerminal } from '../helpers/cli.ts';
import { sharedApp } from '../helpers/shared-app.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';

const t = sharedApp();

async function open(settings: object = {}): Promise<{ shop: Shop; slug: string; env: Record<string, string> }> {
  const shop = await Shop.open(t.url, settings);
  const { stdout } = await cli(['projects', 'show', shop.project, '--json'], envOf(t.url));
  return { shop, slug: JSON.parse(stdout).slug, env: { ...envOf(t.url), SLUICE_PROJECT: shop.project } };
}

test('a linked folder means its project and environment, below it too, and sluice alone says how it is', async () => {
  const { shop, slug } = await open();
  await shop.released('registry.example/shop:1.4');
  const env = envOf(t.url);
  const cwd = mkdtempSync(join(tmpdir(), 'sluice-link-'));
  const below = join(cwd, 'src');
  mkdirSync(below);
  const run = (args: string[], folder = cwd) => cli(args, env, { cwd: folder });
  assert.equal((await run(['link'])).code, 3);
  await cli(['env', 'create', 'staging', '-p', slug], env);
  assert.match((await run(['link', slug, '-e', 'staging'])).stdout, new RegExp(`^This folder is ${slug} · staging\n$`));
  assert.deepEqual(JSON.parse(readFileSync(join(cwd, '.sluice.json'), 'utf8')), {
    project: slug,
    environment: 'staging',
  });
  assert.match(
    (await run(['link'], below)).stdout,
    new RegExp(`^${slug} · staging {2}\\(\\.\\./\\.sluice\\.json\\)\n$`),
  );
  assert.match((await run(['env', 'show'], below)).stdout, /name +staging/);
  assert.match((await run(['env', 'show', '-e', 'production'], below)).stdout, /name +production/);
  const deployed = await run(['deploy', 'shop:7'], below);
  assert.match(deployed.stdout, /r1 serves all of staging/);
  const alone = await run([], below);
  assert.equal(alone.code, 0, alone.stderr);
  assert.match(alone.stdout, new RegExp(`^${slug} · production +healthy +r1 +1\\.4`, 'm'));
  assert.match(alone.stdout, new RegExp(`^${slug} · staging +healthy +r1 +7`, 'm'));
  assert.match(
    alone.stderr,
    /^last: r1 of staging succeeded (?:just now|\d+ s ago) · next: sluice deploy IMAGE · sluice logs -f\n$/,
  );
  assert.equal((await run(['link', '--remove'])).code, 0);
  assert.match((await run([])).stdout, /^usage: sluice COMMAND/);
  writeFileSync(join(cwd, '.sluice.json'), '{"project": "../etc"}');
  const broken = await run(['env', 'show']);
  assert.equal(broken.code, 78);
  assert.match(broken.stderr, /is not what sluice link writes/);
  rmSync(cwd, { recursive: true });
});

test('a deployment is named by its revision, its id, or the beginning of its id', async () => {
  const { shop, env } = await open();
  const first = await shop.released('shop:1');
  const second = await shop.released('shop:2');
  const idOf = async (named: string) =>
    JSON.parse((await cli(['deployments', 'show', named, '--json'], env)).stdout).id;
  assert.equal(await idOf('r1'), first.id);
  assert.equal(await idOf(second.id), second.id);
  assert.equal(await idOf(second.id.slice(0, 29)), second.id);
  assert.equal(await idOf(first.id.slice('dpl_'.length, 29)), first.id);
  const both = await cli(['deployments', 'show', 'dpl_0'], env);
  assert.equal(both.code, 2);
  assert.match(both.stderr, new RegExp(`2 deployments begin with dpl_0: ${second.id}, ${first.id}`));
  assert.equal((await cli(['deployments', 'show', 'dpl_zz'], env)).code, 3);
  assert.equal((await cli(['deployments', 'show', 'r9'], env)).code, 3);
  assert.equal((await cli(['deployments', 'show', 'no!'], env)).code, 2);
  assert.match((await cli(['logs', 'r2'], env)).stdout, /of shop:2 started\n$/);
});

test('rollback shows what it restores and asks on a terminal; no leaves everything as it was', async () => {
  const { shop, env } = await open();
  await shop.released('registry.example/shop:1.0');
  await cli(['env', 'variables', 'CHECKOUT_V2=on'], env);
  await shop.released('registry.example/shop:2.0');
  const asked = onTerminal(['rollback'], env, { input: null });
  await asked.says(
    /r2 → r1 {2}\(2\.0 → 1\.0, variables: − CHECKOUT_V2\)[\s\S]*Roll production of \S+ back\? \[y\/N\] /,
  );
  asked.child.stdin!.write('n\r');
  assert.equal((await asked.ended).code, 130);
  assert.equal((await shop.visit()).image, 'registry.example/shop:2.0');
  const done = await cli(['rollback'], env);
  assert.equal(done.code, 0, done.stderr);
  assert.match(done.stderr, /^r2 → r1 {2}\(2\.0 → 1\.0/);
  assert.match(done.stdout, /r3 serves all of production/);
  assert.equal((await shop.visit()).image, 'registry.example/shop:1.0');
});

test('diff: what differs between two revisions, or from the one before', async () => {
  const { shop, env } = await open();
  await shop.released('registry.example/shop:1.0');
  await cli(['env', 'variables', 'SECRET_KEY=abc'], env);
  await cli(['env', 'set', 'resources.memory_mb=256'], env);
  await shop.released('registry.example/shop:2.0');
  const { code, stdout, stderr } = await cli(['diff', 'r1', 'r2'], env);
  assert.equal(code, 0, stderr);
  assert.equal(
    stdout,
    [
      '~ image                 registry.example/shop:1.0 → registry.example/shop:2.0',
      '~ resources.memory_mb   512 → 256',
      '+ variables.SECRET_KEY',
      '',
    ].join('\n'),
  );
  assert.match((await cli(['diff', 'r2'], env)).stderr, /^r1 → r2 of /);
  assert.match((await cli(['diff', 'r2', 'r1'], env)).stdout, /^− variables\.SECRET_KEY$/m);
  assert.deepEqual(Object.keys(JSON.parse((await cli(['diff', 'r1', 'r2', '--json'], env)).stdout)), [
    'from',
    'to',
    'changes',
  ]);
  assert.equal((await cli(['diff', 'one'], env)).code, 2);
  assert.equal((await cli(['diff', 'r1', 'r9'], env)).code, 3);
});

test('metrics: requests of each revision; audit: who changed what', async () => {
  const { shop, slug, env } = await open();
  await shop.released('shop:1');
  assert.match((await cli(['metrics'], env)).stderr, /had no requests in that time/);
  const visitors = shop.load(2);
  const shown = await until(
    'counted requests',
    async () => {
      const { stdout } = await cli(['metrics', '--since', '5m'], env);
      return /^r1 +([1-9][\d,]*) +0\.0 % +[\d.]+ ms +[\d.]+ ms +\S/m.exec(stdout) ?? undefined;
    },
    30_000,
  );
  await visitors.stop();
  assert.ok(shown);
  assert.match((await cli(['metrics', '--since', 'soon'], env)).stderr, /--since must be a time/);
  const audit = await cli(['audit', '-n', '5'], env);
  assert.match(audit.stdout, /^WHEN +BY +ACTION +RESOURCE +ADDRESS +REQUEST\n/);
  assert.match(audit.stdout, / admin +deployments\.create +deployments\/dpl_/);
  assert.deepEqual(
    JSON.parse((await cli(['audit', '--action', 'webhooks', '--project', slug, '--json'], env)).stdout),
    [],
  );
});

test('open prints the address, and hands it to the browser on a terminal', async () => {
  const { shop, env } = await open();
  const { url } = await shop.environment();
  assert.equal((await cli(['open'], env)).stdout, `${url}\n`);
  assert.equal(
    (await cli(['open', '--console'], env)).stdout,
    `${t.url}/console/projects/${shop.project}/environments/production\n`,
  );
  const dir = mkdtempSync(join(tmpdir(), 'sluice-browser-'));
  const browser = join(dir, 'browser');
  writeFileSync(browser, `#!/bin/sh\necho "$1" > ${join(dir, 'opened')}\n`);
  chmodSync(browser, 0o755);
  assert.equal((await onTerminal(['open'], { ...env, BROWSER: browser }).ended).code, 0);
  const opened = await until('the browser', async () => {
    try {
      return readFileSync(join(dir, 'opened'), 'utf8') || undefined;
    } catch {
      return undefined;
    }
  });
  assert.equal(opened, `${url}\n`);
  assert.equal((await onTerminal(['open'], { ...env, BROWSER: '/nowhere' }).ended).code, 0);
  rmSync(dir, { recursive: true });
});

test('a secret is asked for without being shown, or comes from a file', async () => {
  const { env } = await open();
  const asking = onTerminal(['env', 'variables', 'API_KEY', 'OTHER'], env, { input: null });
  await asking.says(/API_KEY \(not shown\): /);
  asking.child.stdin!.write('hidden-one\r');
  await asking.says(/OTHER \(not shown\): /);
  asking.child.stdin!.write('hidden-two\r');
  const { code, stdout } = await asking.ended;
  assert.equal(code, 0, stdout);
  assert.match(stdout, /API_KEY, OTHER set for the next revision/);
  assert.doesNotMatch(stdout, /hidden/);
  const dir = mkdtempSync(join(tmpdir(), 'sluice-secret-'));
  writeFileSync(join(dir, 'key.pem'), 'line one\nline two\n');
  const fromFile = await cli(['env', 'variables', '--file', 'TLS_KEY=key.pem', 'PLAIN=1'], env, { cwd: dir });
  assert.match(fromFile.stdout, /PLAIN, TLS_KEY set/);
  assert.equal((await cli(['env', 'variables', '--file', 'X=none'], env, { cwd: dir })).code, 2);
  const names = JSON.parse((await cli(['env', 'variables', '--json'], env)).stdout);
  assert.deepEqual(names, ['API_KEY', 'OTHER', 'PLAIN', 'TLS_KEY']);
  rmSync(dir, { recursive: true });
});

test('an invalid value is named with its field, exit code 2', async () => {
  const { env } = await open();
  const replicas = await cli(['env', 'set', 'replicas=99', 'canary.bake_s=-1'], env);
  assert.equal(replicas.code, 2);
  assert.match(replicas.stderr, /^sluice: .*replicas must be <= 20\.$/m);
  assert.match(replicas.stderr, /^ {2}canary\.bake_s: /m);
  assert.match(replicas.stderr, /Request req_\w+ \(invalid_request\)/);
  const blank = await cli(['deploy', 'shop:2 0'], env);
  assert.equal(blank.code, 2);
  assert.match(blank.stderr, /a blank at position 7, for example registry\.example\/shop:2\.0/);
});

test('on a narrow terminal ids and images stay whole, and columns are left out instead', async () => {
  const { shop, env } = await open();
  const image = 'registry.example/a-team-with-a-long-name/shop:1.0.0';
  const { id } = await shop.released(image);
  const plain = (text: string) => text.replaceAll(/\x1b\[[\d;]*m/g, '').replaceAll('\r', '');
  const { stdout } = await onTerminal(['deployments'], env).ended;
  assert.match(plain(stdout), new RegExp(`^ID +STATE +REV +IMAGE\n${id} +\\S+ +r1 +${image}\n$`));
  const { stdout: status } = await onTerminal(['status'], env).ended;
  assert.match(plain(status), new RegExp(`^PROJECT +ENV +HEALTH +IMAGE\n\\S+[^…] +production +healthy +${image}\n$`));
});

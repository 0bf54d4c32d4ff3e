// Deploying, rollout commands and watching from the command line, on the real app.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { widthOf } from '../../src/cli/terminal/table.ts';
import { cli, envOf, onTerminal, startCli } from '../helpers/cli.ts';
import { sharedApp } from '../helpers/shared-app.ts';
import { Shop } from '../helpers/shop.ts';

const t = sharedApp();

async function open(settings: object = {}): Promise<{ shop: Shop; env: Record<string, string> }> {
  const shop = await Shop.open(t.url, settings);
  return { shop, env: { ...envOf(t.url), SLUICE_PROJECT: shop.project } };
}

test('deploy: the timeline as it comes, exit code 0 when it serves', async () => {
  const { shop, env } = await open();
  const { code, stdout, stderr } = await cli(['deploy', 'shop:1', '--note', 'first'], env);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^✔ succeeded: r1 serves all of production, after \d+ s\n {2}http:\S+\n$/);
  for (const state of ['queued', 'starting', 'promoting', 'succeeded'])
    assert.match(stderr, new RegExp(`^\\d\\d:\\d\\d:\\d\\d {2}${state}`, 'm'));
  assert.doesNotMatch(stdout + stderr, /\x1b/);
  assert.equal((await shop.visit()).image, 'shop:1');

  const json = await cli(['deploy', 'shop:2', '--json'], env);
  assert.deepEqual([JSON.parse(json.stdout).state, json.code], ['succeeded', 0]);
  const quiet = await cli(['deploy', 'shop:3', '--wait', '--quiet'], env);
  assert.equal(quiet.stderr, '');
  const later = await cli(['deploy', 'shop:4', '--detach'], env);
  const [id] = /^dpl_\w+/.exec(later.stdout)!;
  assert.equal((await cli(['deployments', 'watch', id], env)).code, 0);
  assert.match((await cli(['deployments', 'show'], env)).stdout, new RegExp(`id +${id}[\\s\\S]*revision +r3 → r4`));
  assert.equal(JSON.parse((await cli(['deployments', '--json', '--limit', '2'], env)).stdout).length, 2);
  assert.match((await cli(['revisions'], env)).stdout, /^r4 +active +100 % +it serves already +shop:4/m);
  assert.match((await cli(['status'], env)).stdout, /production +healthy +serving +r4 100 % +shop:4/);
});

test('deploy of an image that never gets healthy: exit code 1, why, its last words above that, and what serves', async () => {
  const { env } = await open({ health_check: { start_timeout_s: 5 } });
  assert.equal((await cli(['deploy', 'shop:1', '--wait'], env)).code, 0);
  await cli(['env', 'variables', 'STANDIN_UNHEALTHY=1'], env);
  const { code, stdout } = await cli(['deploy', 'shop:2', '--wait'], env);
  assert.equal(code, 1);
  assert.match(
    stdout,
    /^ {2}│ instance ins_\w+ of shop:2 started\n✖ failed after \d+ s: .+ \(port_not_listening\)\n {2}r1 still serves production\.\n {2}Set the port .+\n$/,
  );
});

test('a canary: pause, resume, promote; abort; rollback', async () => {
  const { shop, env } = await open({ canary: { advance: 'manual', bake_s: 1 } });
  await cli(['deploy', 'shop:1', '--wait'], env);
  const canary = JSON.parse((await cli(['deploy', 'shop:2', '--canary', '25', '--detach', '--json'], env)).stdout);
  await shop.reaches(canary.id, 'canary');
  assert.match((await cli(['pause'], env)).stdout, /r2 is canary, paused at 25 %/);
  assert.match((await cli(['status'], env)).stdout, /canary 25 %, paused +r1 75 %, r2 25 %/);
  assert.match((await cli(['resume'], env)).stdout, /r2 is canary, baking at 25 %/);
  assert.equal((await cli(['promote', '--wait'], env)).code, 0);

  const third = JSON.parse((await cli(['deploy', 'shop:3', '--strategy', 'canary', '--detach', '--json'], env)).stdout);
  await shop.reaches(third.id, 'canary');
  const busy = await cli(['deploy', 'shop:4'], env);
  assert.equal(busy.code, 1);
  assert.match(
    busy.stderr,
    new RegExp(`sluice deployments watch ${third.id}[\\s\\S]*Request req_\\w+ \\(deployment_in_progress\\)`),
  );
  const aborted = await cli(['abort', '--wait'], env);
  assert.equal(aborted.code, 1, 'what was aborted has not succeeded');
  assert.match(aborted.stdout, /r2 still serves production/);
  assert.equal((await cli(['promote'], env)).code, 3);

  const back = await cli(['rollback', 'r1', '--wait', '--reason', 'slow'], env);
  assert.equal(back.code, 0, back.stderr);
  assert.equal((await shop.visit()).image, 'shop:1');
  assert.equal((await cli(['rollback', 'r99'], env)).code, 3);
  assert.equal((await cli(['rollback', 'seven'], env)).code, 2);
});

test('on a terminal: the stages, both sides’ figures and the time left, never wider than it, and a clean end', async () => {
  const { shop, env } = await open({ canary: { bake_s: 3 } });
  await shop.released('registry.example/a-team-with-a-long-name/shop:1.0.0');
  const visitors = shop.load(2);
  const watching = onTerminal(
    ['deploy', 'registry.example/a-team-with-a-long-name/shop:2.0.0', '--canary', '30', '--wait'],
    env,
  );
  const { code, stdout } = await watching.ended;
  await visitors.stop();
  assert.equal(code, 0, stdout);
  const plain = stripVTControlCharacters(stdout);
  assert.match(plain, /^ {2}30 % +▕█* *▏ \d:\d\d left/m);
  assert.match(plain, /r2 +30 % +[1-9][\d,]* +0\.0 % +0\.0 % +[\d.]+ ms/);
  assert.match(plain, /r1 +70 % +[1-9][\d,]* +0\.0 % +0\.0 % +[\d.]+ ms/);
  for (const draw of stdout.matchAll(/\x1b\[\?2026h[\s\S]*?\x1b\[\?2026l/g)) {
    const drawn = draw[0].split('\r\n');
    for (const line of drawn) assert.ok(widthOf(line.replaceAll('\r', '')) < 60, JSON.stringify(line));
  }
  assert.equal(stdout.match(/\x1b\[\?25l/g)?.length, 1, 'the cursor is hidden once');
  const shown = stdout.slice(stdout.lastIndexOf('\x1b[J'));
  assert.match(shown, /^\x1b\[J\x1b\[\?25h\S*✔ succeeded/, 'and what was drawn is gone at the end');
  const stays = [/image +ready after [\d.]+ s, sha256:/, /start +healthy after [\d.]+ s/, /30 % +held for [\d.]+ s/];
  for (const stage of [...stays, /100 % +reached after [\d.]+ s/]) assert.match(plain, stage);
});

test('Ctrl-C while waiting lets go of the deployment, and says how to come back', async () => {
  const { shop, env } = await open({ canary: { advance: 'manual', bake_s: 1 } });
  await shop.released('shop:1');
  const waiting = startCli(['deploy', 'shop:2', '--canary', '10', '--wait'], env);
  await waiting.says(/canary/);
  waiting.child.kill('SIGINT');
  const { code, stderr } = await waiting.ended;
  assert.equal(code, 130);
  const [, id] = /goes on\. Watch it again: sluice deployments watch (dpl_\w+)/.exec(stderr)!;
  assert.equal((await shop.deployment(id!)).state, 'canary');
  await cli(['abort', id!], env);
});

test('logs, and following them over to the next deployment', async () => {
  const { shop, env } = await open();
  assert.equal((await cli(['logs'], env)).code, 3);
  await shop.released('shop:1');
  assert.match((await cli(['logs'], env)).stdout, /^\d\d:\d\d:\d\d \w{6} {2}instance ins_\w+ of shop:1 started\n$/);
  const [line] = JSON.parse((await cli(['logs', '--json'], env)).stdout);
  assert.equal(line.stream, 'stdout');
  const following = startCli(['logs', '-f', '--json'], env);
  await following.says(/of shop:1 started/);
  await shop.released('shop:2');
  await following.says(/of shop:2 started/);
  following.child.kill('SIGINT');
  const { code, stdout } = await following.ended;
  assert.equal(code, 0);
  const texts = stdout
    .trim()
    .split('\n')
    .map((each) => JSON.parse(each).text as string);
  assert.equal(new Set(texts).size, texts.length, 'no line comes twice');
});

test('redeploy: what was changed is said, and rolled out with the live image', async () => {
  const { shop, env } = await open();
  assert.match((await cli(['redeploy'], env)).stderr, /nothing to redeploy/);
  await cli(['deploy', 'shop:1', '--wait'], env);
  assert.doesNotMatch((await cli(['status'], env)).stdout, /PENDING/);
  const set = await cli(['env', 'set', 'resources.memory_mb=256', 'resources.cpus=0.5', 'replicas=2'], env);
  assert.equal(set.stdout, 'resources.memory_mb = 256\nresources.cpus = 0.5\nreplicas = 2\n');
  assert.match(
    set.stderr,
    /^2 changes apply with the next deployment \(now: sluice redeploy\): resources.memory_mb 512 → 256, /,
  );
  await cli(['env', 'variables', 'KEY=hidden'], env);
  const shown = await cli(['env', 'show'], env);
  assert.match(shown.stdout, /pending +resources.memory_mb 512 → 256, resources.cpus 1 → 0.5, variables.KEY\n/);
  assert.match((await cli(['status'], env)).stdout, /resources.memory_mb, resources.cpus, variables.KEY$/m);
  assert.ok(!shown.stdout.includes('hidden'));
  const done = await cli(['redeploy', '--strategy', 'blue_green', '--note', 'more', '--wait'], env);
  assert.equal(done.code, 0, done.stderr);
  assert.match(done.stdout, /r2 serves all of production/);
  assert.match((await cli(['env', 'show'], env)).stdout, /resources +memory_mb=256 cpus=0.5\n[\s\S]*pending +-\n/);
  assert.equal((await shop.revision('r2')).image, 'shop:1');
});

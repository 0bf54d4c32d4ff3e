// Events and webhooks from the command line: following, listening, forwarding, sending again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startApp } from '../helpers/app.ts';
import { cli, envOf, startCli } from '../helpers/cli.ts';
import { answering, Receiver } from '../helpers/receiver.ts';
import { sharedApp } from '../helpers/shared-app.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';

let env: Record<string, string>;
const t = sharedApp({}, () => {
  env = envOf(t.url);
});

test('listen: shows each event, verifies its signature, and removes its webhook at the end', async () => {
  const shop = await Shop.open(t.url);
  const listening = startCli(['webhooks', 'listen', '--project', shop.project], env);
  await listening.says(/Listening at http:\/\/127\.0\.0\.1:\d+\/ as whk_/);
  await shop.released('shop:1');
  await listening.says(/deployment\.created +\S+ +production r1 shop:1 +verified/);
  await listening.says(/deployment\.succeeded +\S+ +production r1 shop:1 +verified/);

  const [, url] = await listening.says(/Listening at (\S+)/);
  const forged = { id: 'evt_x', type: 'deployment.created', created_at: new Date().toISOString() };
  const answer = await fetch(url!, {
    method: 'POST',
    headers: { 'x-service-signature': '0'.repeat(64) },
    body: JSON.stringify(forged),
  });
  assert.equal(answer.status, 401);
  await listening.says(/WRONG SIGNATURE/);
  assert.equal((await fetch(url!, { method: 'POST', body: 'no event' })).status, 400);

  listening.child.kill('SIGTERM');
  assert.equal((await listening.ended).code, 0);
  assert.deepEqual(JSON.parse((await cli(['webhooks', '--json'], env)).stdout), []);
});

test('listen --forward hands each delivery on with its signature, and gives the answer back', async () => {
  const shop = await Shop.open(t.url);
  const receiver = await Receiver.open(answering(503));
  const args = ['webhooks', 'listen', '--events', 'deployment.succeeded', '--forward', receiver.url, '--json'];
  const listening = startCli(args, env);
  const [, webhook] = await listening.says(/ as (whk_\w+)/);
  await listening.says(/signed with whsec_/);
  await shop.released('shop:1');
  const [arrival] = await receiver.has(1);
  assert.equal(arrival!.event.type, 'deployment.succeeded');
  assert.match(String(arrival!.headers['x-service-signature']), /^[0-9a-f]{64}$/);
  await listening.says(/"answer":"503"/);
  const told = JSON.parse(listening.stdout().split('\n')[0]!);
  assert.deepEqual([told.verified, told.event.type], [true, 'deployment.succeeded']);
  const delivery = await until('the failure to be written down', async () => {
    const [first] = JSON.parse((await cli(['webhooks', 'deliveries', webhook!, '--json'], env)).stdout);
    return first.attempt_count > 0 ? first : undefined;
  });
  assert.match((await cli(['webhooks', 'delivery', webhook!, delivery.id], env)).stdout, /1\. \S+ {2}503 {2}\d+ ms/);
  receiver.behave = answering(200);
  assert.match((await cli(['webhooks', 'redeliver', webhook!, delivery.id], env)).stdout, /is on its way/);
  await listening.says(/"answer":"200"/);
  listening.child.kill('SIGINT');
  assert.equal((await listening.ended).code, 0);
  await receiver.close();
});

test('where the service may not send here, listen follows the stream and says so', async () => {
  const wide = await startApp({ env: { SLUICE_HOST: '0.0.0.0' } });
  const there = envOf(wide.url);
  const shop = await Shop.open(wide.url);
  const listening = startCli(['webhooks', 'listen'], there);
  await listening.says(/following the event stream instead/);
  await shop.released('shop:1');
  await listening.says(/deployment\.succeeded +\S+ +production r1 shop:1\n/);
  listening.child.kill('SIGINT');
  assert.equal((await listening.ended).code, 0);
  const refused = await cli(['webhooks', 'listen', '--forward', 'http://127.0.0.1:9/'], there);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /SLUICE_WEBHOOK_ALLOW_CIDRS/);
  await wide.stop();
});

test('create, test, rotate, replay, pause, delete; secrets are alone on standard output', async () => {
  const receiver = await Receiver.open();
  const made = await cli(['webhooks', 'create', receiver.url, '--events', 'deployment.failed'], env);
  assert.match(made.stdout, /^whsec_[A-Za-z0-9+/]{43}=\n$/);
  const [id] = /whk_\w+/.exec(made.stderr)!;
  assert.equal((await cli(['webhooks', 'test', id], env)).code, 0);
  assert.equal((await receiver.has(1))[0]!.event.type, 'webhook.test');
  assert.match((await cli(['webhooks', 'rotate', id, '--overlap', '0'], env)).stdout, /^whsec_/);
  assert.match((await cli(['webhooks', 'replay', id, '--since', '1h'], env)).stdout, /^0 deliveries on the way/);
  assert.equal((await cli(['webhooks', 'replay', id], env)).code, 2);
  assert.match((await cli(['webhooks', 'pause', id], env)).stdout, /paused/);
  assert.equal((await cli(['webhooks', 'test', id], env)).code, 1);
  assert.match((await cli(['webhooks', 'enable', id], env)).stdout, /enabled/);
  assert.equal((await cli(['webhooks', 'delete', id], env)).code, 0);
  assert.equal((await cli(['webhooks', 'delete', id], env)).code, 3);
  await receiver.close();
});

test('events: the latest ones, and following from one on', async () => {
  const shop = await Shop.open(t.url);
  const of = ['--project', shop.project];
  await shop.released('shop:1');
  const events = JSON.parse((await cli(['events', ...of, '--json'], env)).stdout);
  assert.deepEqual(
    events.map(({ type }: { type: string }) => type),
    ['deployment.succeeded', 'deployment.created'],
  );
  assert.match((await cli(['events', ...of], env)).stdout, /deployment\.created[\s\S]*deployment\.succeeded/);
  const following = startCli(['events', '-f', ...of, '--after', events[1].id, '--json'], env);
  await following.says(/"deployment\.succeeded"/);
  await shop.released('shop:2');
  await following.says(/"revision":"r2"[\s\S]*"deployment\.succeeded"/);
  following.child.kill('SIGINT');
  const { code, stdout } = await following.ended;
  assert.equal(code, 0);
  const sequence = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).sequence);
  assert.deepEqual(sequence, [2, 3, 4]);
});

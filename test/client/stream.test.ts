// The client's stream of events against the real service, also while that restarts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type App, createApp } from '../../src/app.ts';
import { type ChangeNotice, createClient, type Sluice, type SluiceEvent } from '../../src/client/index.ts';
import { readConfig } from '../../src/config.ts';
import { adminToken, isolatedEnv } from '../helpers/app.ts';
import { freePort } from '../helpers/free-port.ts';
import { sharedApp } from '../helpers/shared-app.ts';
import { until } from '../helpers/wait.ts';
import { collect, deployWith, newShopOf } from './client-fixture.ts';

let sluice: Sluice;
const t = sharedApp({ tokenLimit: 1_000_000 }, () => {
  sluice = createClient({ url: t.url, token: adminToken });
});

const newShop = (client = sluice) => newShopOf(client);
const deploy = (project: string, image: string, client = sluice) => deployWith(client, project, image);

/** Follows in the background. */
function follow(client: Sluice, query: { changes?: 'true' } = {}, lastEventId?: string) {
  const told: (SluiceEvent | ChangeNotice)[] = [];
  const states: string[] = [];
  const controller = new AbortController();
  const options = { signal: controller.signal, onState: (state: string) => void states.push(state) };
  const ended = (async () => {
    for await (const each of client.events.stream(query, { ...options, ...(lastEventId && { lastEventId }) }))
      told.push(each);
  })();
  const kinds = (project: string) => told.filter((each) => each.project_id === project).map(({ type }) => type);
  return { told, states, kinds, ended, stop: () => controller.abort() };
}

test('tells what happens, and with `changes` of what else changed; ends quietly when called off', async () => {
  const follower = follow(sluice, { changes: 'true' });
  await until('the stream', () => follower.states[0]);
  const project = await newShop();
  const { id } = await deploy(project, 'shop:1');
  await until('the end', () => follower.kinds(project).find((kind) => kind === 'deployment.succeeded'));
  const created = follower.told.find((each) => each.type === 'deployment.created' && each.project_id === project);
  assert.ok(created?.type === 'deployment.created');
  assert.equal(created.data.id, id);
  assert.deepEqual(await sluice.events.get(created.id), created);
  await until('a notice', () => follower.kinds(project).find((kind) => kind === 'changed'));
  follower.stop();
  await follower.ended;
  const again = follow(sluice, {}, created.id);
  await until('what came after', () => again.kinds(project)[0]);
  assert.equal(again.kinds(project)[0], 'deployment.succeeded');
  again.stop();
  await again.ended;
  const events = await collect(sluice.events.list({ project_id: project }));
  assert.deepEqual(
    events.map(({ sequence }) => sequence),
    [2, 1],
  );
});

test('an event to resume after that the service does not have: says so, and gives all there are', async () => {
  const project = await newShop();
  await deploy(project, 'shop:1');
  let resets = 0;
  const controller = new AbortController();
  const options = { lastEventId: `evt_${'7'.repeat(26)}`, signal: controller.signal, onReset: () => void resets++ };
  for await (const event of sluice.events.stream({ project_id: project }, options)) {
    assert.equal(event.type, 'deployment.created');
    controller.abort();
  }
  assert.equal(resets, 1);
});

test('gives up on errors that a retry cannot fix, and if the service never answered', async () => {
  for (const [token, code] of [['slc_wrong', 'token_invalid']] as const)
    await assert.rejects(collect(createClient({ url: t.url, token }).events.stream()), { code });
  const elsewhere = sluice.events.stream({ project_id: 'prj_01k9xw3v5qfk2t8m7c4b6d9e0h' });
  await assert.rejects(collect(elsewhere), { code: 'project_not_found' });
  const nobody = createClient({ url: 'http://127.0.0.1:1', token: 'x', maxRetries: 0 });
  await assert.rejects(collect(nobody.events.stream()), { code: 'network' });
});

interface Restartable {
  url: string;
  client: Sluice;
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** A service that comes back at the same address with the same data. */
async function withService(work: (service: Restartable) => Promise<void>): Promise<void> {
  const isolated = await isolatedEnv();
  const env = { ...isolated.env, SLUICE_PORT: String(await freePort()) };
  const open = () => createApp(readConfig(env, false));
  let app: App = await open();
  const url = app.apiUrl();
  try {
    await work({
      url,
      client: createClient({ url, token: adminToken }),
      stop: () => app.stop(),
      async start() {
        app = await open();
      },
    });
  } finally {
    await app.stop();
    await isolated.clean();
  }
}

async function hasEverything(follower: ReturnType<typeof follow>, client: Sluice): Promise<void> {
  const all = (await collect(client.events.list())).map(({ id }) => id).reverse();
  await until('all events', () => (follower.told.length >= all.length ? true : undefined));
  assert.deepEqual(
    follower.told.map((each) => 'id' in each && each.id),
    all,
  );
  assert.deepEqual(follower.states, ['open', 'lost', 'open']);
  follower.stop();
  await follower.ended;
}

test('a restart of the service under it loses nothing and repeats nothing', () =>
  withService(async ({ client, stop, start }) => {
    const follower = follow(client);
    await until('the stream', () => follower.states[0]);
    const project = await newShop(client);
    const first = await deploy(project, 'shop:1', client);
    await until('an event', () => follower.kinds(project)[0]);
    const waiting = client.waitFor(project, first.id, { intervalMs: 50 });
    await stop();
    await until('the loss', () => follower.states.find((state) => state === 'lost'));
    await start();
    assert.equal((await waiting).state, 'succeeded');
    const second = await deploy(project, 'shop:2', client);
    await client.waitFor(project, second.id, { intervalMs: 50 });
    await hasEverything(follower, client);
  }));

test('also where no event had come before the restart, and some happen before the stream is back', () =>
  withService(async ({ url, client, stop, start }) => {
    const gate = { opens: Promise.resolve() };
    const held: typeof fetch = async (input, init) => {
      await gate.opens;
      return fetch(input, init);
    };
    const follower = follow(createClient({ url, token: adminToken, fetch: held }));
    await until('the stream', () => follower.states[0]);
    const project = await newShop(client);
    const { promise, resolve } = Promise.withResolvers<void>();
    gate.opens = promise;
    await stop();
    await until('the loss', () => follower.states.find((state) => state === 'lost'));
    await start();
    const { id } = await deploy(project, 'shop:1', client);
    await client.waitFor(project, id, { intervalMs: 50 });
    assert.deepEqual(follower.told, []);
    resolve();
    await hasEverything(follower, client);
  }));

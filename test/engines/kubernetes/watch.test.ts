// List-and-watch against an API that does what a real one does only on bad days.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { connectKubernetes, type KubeClient } from '../../../src/engines/kubernetes/kube-client.ts';
import type { Pod } from '../../../src/engines/kubernetes/kube-objects.ts';
import { type Cache, type WatchTimes, watchedCache } from '../../../src/engines/kubernetes/kube-watch.ts';
import { type KubeApi, startKubeApi } from '../../helpers/kube-api.ts';
import { until } from '../../helpers/wait.ts';

const quick: WatchTimes = { watchS: 300, silenceMs: 60_000, firstWaitMs: 10, longestWaitMs: 100 };
const labels = { 'sluice.installation': 'here' };
const pathOf = (name: string) => `/api/v1/namespaces/shop/pods/${name}`;
const podNamed = (name: string, more: object = {}) => ({ metadata: { name, namespace: 'shop', labels, ...more } });

interface Parts {
  api: KubeApi;
  client: KubeClient;
  pods: Cache<Pod>;
  lost: unknown[];
  names(): string[] | null;
}

async function start(times: Partial<WatchTimes> = {}, prepare: (api: KubeApi) => void = () => {}): Promise<Parts> {
  const api = await startKubeApi();
  prepare(api);
  const client = connectKubernetes(api.access);
  const lost: unknown[] = [];
  const pods = watchedCache<Pod>(client, {
    path: '/api/v1/pods',
    labelSelector: 'sluice.installation=here',
    onChange: () => {},
    onLost: (error) => lost.push(error),
    times: { ...quick, ...times },
  });
  after(async () => {
    pods.stop();
    await client.close();
    await api.close();
  });
  const names = () =>
    pods
      .all()
      ?.map(({ metadata }) => metadata.name)
      .toSorted() ?? null;
  return { api, client, pods, lost, names };
}

const has = async ({ names }: Parts, ...wanted: string[]) => {
  await until(`pods ${wanted.join(' ')}`, () => names()?.join(' ') === wanted.join(' '));
};
const isWatching = ({ api }: Parts) => until('a watch', () => api.watches().open === 1);

test('lists in pages, then follows what comes, changes and goes', async () => {
  const parts = await start({}, (api) => {
    api.pageSize = 2;
    for (const name of ['a', 'b', 'c', 'd', 'e']) api.put(pathOf(name), podNamed(name));
    api.put(pathOf('other'), { metadata: { name: 'other', namespace: 'shop', labels: {} } });
  });
  await has(parts, 'a', 'b', 'c', 'd', 'e');
  await isWatching(parts);
  parts.api.put(pathOf('f'), podNamed('f'));
  parts.api.put(pathOf('a'), null);
  parts.api.put(pathOf('b'), podNamed('b', { annotations: { seen: 'yes' } }));
  await has(parts, 'b', 'c', 'd', 'e', 'f');
  await until('the change', () => parts.pods.find('shop', 'b')?.metadata.annotations?.seen === 'yes');
});

test('after a broken connection it goes on from the last version, without another list', async () => {
  const parts = await start();
  await isWatching(parts);
  parts.api.put(pathOf('a'), podNamed('a'));
  await has(parts, 'a');
  parts.api.bookmark();
  const version = 102;
  parts.api.cut();
  await until('another watch', () => parts.api.watches().begun === 2);
  const last = parts.api.asked.findLast((line) => line.includes('watch=true'))!;
  assert.match(last, new RegExp(`resourceVersion=${version}`), 'the bookmark counts');
  assert.equal(parts.api.asked.filter((line) => line.includes('limit=')).length, 1);
  parts.api.put(pathOf('b'), podNamed('b'));
  await has(parts, 'a', 'b');
});

test('a version that is too old means another list, whether the watch or its first answer says so', async () => {
  const parts = await start();
  await isWatching(parts);
  parts.api.mute();
  parts.api.put(pathOf('missed'), podNamed('missed'));
  parts.api.expire();
  await has(parts, 'missed');
  await isWatching(parts);
  parts.api.answerNext(/watch=true/, { status: 410, body: { reason: 'Expired', message: 'too old' } });
  parts.api.put(pathOf('too'), podNamed('too'));
  parts.api.cut();
  await has(parts, 'missed', 'too');
});

test('while the connection is lost nothing is known for certain', async () => {
  const parts = await start({ firstWaitMs: 200, longestWaitMs: 200 });
  await isWatching(parts);
  parts.api.put(pathOf('a'), podNamed('a'));
  await has(parts, 'a');
  parts.api.answerNext(/watch=true/, { status: 503 });
  parts.api.cut();
  await until('its loss', () => parts.names() === null);
  await has(parts, 'a');
});

test('a silent connection is dead', async () => {
  const parts = await start({ silenceMs: 150 });
  await isWatching(parts);
  await until('other watches', () => parts.api.watches().begun >= 3);
  assert.equal(parts.api.watches().open <= 1, true, 'each ends before the next begins');
  assert.match(String(parts.lost[0]), /silent|abort/i);
});

test('refusals that may pass are asked again, as late as the server wishes, and others at once not', async () => {
  const { client, api } = await start();
  api.put(pathOf('a'), podNamed('a'));
  api.answerNext(/GET .*\/pods\/a$/, { status: 429, headers: { 'retry-after': '1' } });
  api.answerNext(/GET .*\/pods\/a$/, { status: 500 });
  const before = performance.now();
  const pod = await client.request<Pod>({ path: pathOf('a') });
  assert.equal(pod.metadata.name, 'a');
  assert.ok(performance.now() - before >= 990, 'Retry-After counts');
  await assert.rejects(client.request({ path: pathOf('none') }), { status: 404, fault: 'start_failed' });
  for (let n = 0; n < 20; n++) api.answerNext(/GET .*\/pods\/a$/, { status: 503 });
  await assert.rejects(client.request({ path: pathOf('a'), timeoutMs: 300 }), { status: 503, fault: 'unavailable' });
});

test('watches that are refused are asked for less and less often', async () => {
  const parts = await start({ firstWaitMs: 20, longestWaitMs: 1000 }, (api) => {
    for (let n = 0; n < 200; n++) api.answerNext(/watch=true/, { status: 403, body: { message: 'not allowed' } });
  });
  await until('some attempts', () => parts.lost.length >= 6);
  assert.ok(parts.api.asked.length < 12, `${parts.api.asked.length} requests`);
  assert.equal(parts.names(), null);
  assert.match(String(parts.lost[0]), /not allowed/);
});

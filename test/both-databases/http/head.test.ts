// HEAD of every route that has a GET answers like it, without the body, and holds nothing afterwards.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { adminToken } from '../../helpers/app.ts';
import { Follower } from '../../helpers/follower.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

let nowMs = Date.now();
const app = sharedApp({ clock: { now: () => nowMs } });

const head = (path: string) =>
  fetch(app.url + path, { method: 'HEAD', headers: { authorization: `Bearer ${adminToken}` } });

test('HEAD of the event stream ends at once and opens no stream', async () => {
  // An account may follow 100 streams at a time.
  for (let count = 0; count < 150; count++) {
    const response = await head('/v1/events/stream');
    assert.equal(response.status, 200);
    assert.match(response.headers.get('content-type')!, /^text\/event-stream/);
    assert.equal(response.headers.get('content-length'), null);
    assert.equal(await response.text(), '');
  }
  const follower = await Follower.open(app.url);
  follower.close();
});

test('HEAD of every GET route has the status and the headers of GET', async () => {
  const { paths } = (await app.call('GET', '/v1/openapi.json')).body as { paths: Record<string, object> };
  const id = await app.newProject();
  const known = Object.entries(paths)
    .filter(([path, methods]) => 'get' in methods && !path.endsWith('/stream'))
    .map(([path]) => `/v1${path.replace('{id}', id).replace('{name}', 'production')}`);
  assert.ok(known.length > 20);
  for (const path of known) {
    nowMs += 60_000;
    const [got, headed] = [await app.call('GET', path), await head(path)];
    assert.equal(headed.status, got.status, path);
    assert.equal(headed.headers.get('content-type'), got.headers.get('content-type'), path);
    if (got.status < 400) assert.equal(headed.headers.get('content-length'), got.headers.get('content-length'), path);
    assert.equal(await headed.text(), '', path);
  }
});

// The live stream of events.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { adminToken, onPostgres, startApp } from '../../helpers/app.ts';
import { emit, emitIn } from '../../helpers/emit.ts';
import { Follower } from '../../helpers/follower.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { until } from '../../helpers/wait.ts';

const t = sharedApp({ tokenLimit: 1_000_000 });

describe('GET /events/stream', () => {
  test('200 with the events from now on, in order, without polling', async (c) => {
    const project = await t.newProject();
    await emit(t.app.store.db, project);
    // This stream never polls: only a notification can bring it an event.
    const start = globalThis.setInterval;
    const intervals = c.mock.method(globalThis, 'setInterval', () => start(() => {}, 3600_000));
    const follower = await Follower.open(t.url, { query: `?project_id=${project}` });
    intervals.mock.restore();
    assert.ok(intervals.mock.callCount() > 0, 'the stream polls with setInterval');
    assert.equal(follower.headers.get('content-type'), 'text/event-stream');
    assert.match(follower.headers.get('x-ratelimit-remaining')!, /^\d+$/);
    await emit(t.app.store.db, project, 'alert.resolved');
    const [event] = await follower.has(1);
    assert.deepEqual([event!.event, event!.data.sequence], ['alert.resolved', 2]);
    assert.equal(event!.id, event!.data.id);
    for (let n = 0; n < 250; n++) await emit(t.app.store.db, project);
    const events = await follower.has(251);
    assert.deepEqual(
      events.map(({ data }) => data.sequence),
      events.map((_, index) => index + 2),
    );
    follower.close();
  });

  test('Last-Event-ID resumes after that event, and a filter holds', async () => {
    const project = await t.newProject();
    for (const kind of ['alert.fired', 'alert.resolved', 'alert.fired', 'alert.resolved'] as const)
      await emit(t.app.store.db, project, kind);
    const { data } = (await t.call('GET', `/v1/events?project_id=${project}`)).body;
    const first = data.at(-1).id;
    const follower = await Follower.open(t.url, {
      query: `?project_id=${project}`,
      headers: { 'last-event-id': first },
    });
    await follower.has(3);
    assert.deepEqual(
      follower.events.map(({ data }) => data.sequence),
      [2, 3, 4],
    );
    follower.close();
    const resolved = await Follower.open(t.url, {
      query: `?project_id=${project}&type=alert.resolved`,
      headers: { 'last-event-id': first },
    });
    await resolved.has(2);
    assert.deepEqual(
      resolved.events.map(({ data }) => data.sequence),
      [2, 4],
    );
    resolved.close();
    const wrong = await t.call('GET', '/v1/events/stream', { headers: { 'last-event-id': 'x' } });
    assert.equal(wrong.status, 400);
  });

  // SQLite has one writer: there, ids are in the order of commits.
  if (onPostgres) {
    test('from now on, also while an older transaction is open: what was committed before is not shown', async () => {
      const project = await t.newProject();
      const { promise: hold, resolve: release } = Promise.withResolvers<void>();
      const { promise: written, resolve: wrote } = Promise.withResolvers<void>();
      const open = t.app.store.db.transaction().execute(async (tx) => {
        await tx
          .insertInto('meta')
          .values({ name: `open ${project}`, value: '1' })
          .execute();
        wrote();
        await hold;
      });
      await written;
      await emit(t.app.store.db, project);
      const follower = await Follower.open(t.url, { query: `?project_id=${project}` });
      await emit(t.app.store.db, project, 'alert.resolved');
      release();
      await open;
      const [event] = await follower.has(1);
      assert.deepEqual([event!.event, event!.data.sequence], ['alert.resolved', 2]);
      follower.close();
    });

    test('nothing is missed where transactions commit in another order than their ids', async () => {
      const [slow, fast] = [await t.newProject(), await t.newProject()];
      const follower = await Follower.open(t.url);
      const { promise: hold, resolve: release } = Promise.withResolvers<void>();
      const { promise: written, resolve: wrote } = Promise.withResolvers<void>();
      const late = t.app.store.db.transaction().execute(async (tx) => {
        await emitIn(tx, slow);
        wrote();
        await hold;
      });
      await written;
      await emit(t.app.store.db, fast);
      await until('the fast one to be committed', async () =>
        (await t.call('GET', `/v1/events?project_id=${fast}`)).body.data.length === 1 ? true : undefined,
      );
      assert.deepEqual(follower.events, [], 'what could still be preceded is not shown yet');
      release();
      await late;
      const events = await follower.has(2);
      assert.deepEqual(
        events.map(({ data }) => data.project_id),
        [slow, fast],
      );
      follower.close();
    });
  }

  test('a stop ends the stream, and does not wait for it', async () => {
    const own = await startApp();
    const response = await fetch(`${own.url}/v1/events/stream`, { headers: { authorization: `Bearer ${adminToken}` } });
    const startedAt = Date.now();
    const ended = response.text();
    await own.stop();
    assert.equal(await ended, 'retry: 2000\n\n');
    assert.ok(Date.now() - startedAt < 20_000, `${Date.now() - startedAt} ms`);
  });
});

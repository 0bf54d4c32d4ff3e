import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { EventKind } from '../../../src/contract/events.ts';
import { eventKinds, eventSchemas } from '../../../src/contract/events.ts';
import type { Db } from '../../../src/db/database.ts';
import { insertEvent } from '../../../src/events/outbox.ts';
import { conforms } from '../../../src/http/api/validate.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createIds, idFloor } from '../../../src/lib/ids.ts';
import { sweepOld } from '../../../src/webhooks/queue/sweep.ts';
import { adminToken, call, onPostgres, startApp } from '../../helpers/app.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';

const t = sharedApp({ tokenLimit: 1_000_000 });

const ids = createIds(systemClock);

async function newProject(): Promise<string> {
  const { body } = await t.call('POST', '/v1/projects', { body: { name: `P ${Math.random()}` } });
  return body.id;
}

async function accountOf(projectId: string): Promise<string> {
  const query = t.app.store.db.selectFrom('project').select('account_id').where('id', '=', projectId);
  return (await query.executeTakeFirstOrThrow()).account_id;
}

async function emitIn(tx: Db, projectId: string, type: EventKind = 'alert.fired', data: object = {}): Promise<void> {
  const accountId = await accountOf(projectId);
  await insertEvent(tx, { ids, clock: systemClock }, { type, accountId, projectId, data });
}

const emit = (projectId: string, type?: EventKind, data?: object) =>
  t.app.store.db.transaction().execute((tx) => emitIn(tx, projectId, type, data));

/** A follower of the stream. */
class Follower {
  text = '';
  ended = false;
  status = 0;
  headers = new Headers();
  readonly #abort = new AbortController();

  static async open(query = '', headers: Record<string, string> = {}, token = adminToken): Promise<Follower> {
    const follower = new Follower();
    const response = await fetch(`${t.url}/v1/events/stream${query}`, {
      headers: { authorization: `Bearer ${token}`, ...headers },
      signal: follower.#abort.signal,
    });
    follower.status = response.status;
    follower.headers = response.headers;
    void (async () => {
      try {
        for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) follower.text += chunk;
      } catch {
        // closed by this side
      }
      follower.ended = true;
    })();
    await until('the head of the stream', () => (follower.text !== '' || follower.ended ? true : undefined));
    return follower;
  }

  get events(): { id: string; event: string; data: { id: string; sequence: number; type: string } }[] {
    const fields = [...this.text.matchAll(/id: (.*)\nevent: (.*)\ndata: (.*)\n\n/g)];
    return fields.map(([, id, event, data]) => ({ id: id!, event: event!, data: JSON.parse(data!) }));
  }

  has = (count: number) => until(`${count} events`, () => (this.events.length >= count ? this.events : undefined));

  close(): void {
    this.#abort.abort();
  }
}

describe('the outbox', () => {
  test('a change that is rolled back leaves no event and no delivery; one that commits has both', async () => {
    const project = await newProject();
    await t.call('POST', '/v1/webhooks', { body: { url: 'http://127.0.0.1:9/', events: ['*'], project_id: project } });
    const { db } = t.app.store;
    const rename = (name: string, fail: boolean) =>
      db.transaction().execute(async (tx) => {
        await tx.updateTable('project').set({ name }).where('id', '=', project).execute();
        await emitIn(tx, project);
        if (fail) throw new Error('the change fails after its event was written');
      });
    await assert.rejects(rename('never', true), /after its event/);
    const look = async () => {
      const events = await db.selectFrom('event').select('id').where('project_id', '=', project).execute();
      const deliveries = await db
        .selectFrom('delivery')
        .innerJoin('event', 'event.id', 'delivery.event_id')
        .select('delivery.id')
        .where('event.project_id', '=', project)
        .execute();
      const { name } = (await t.call('GET', `/v1/projects/${project}`)).body;
      return [name === 'once', events.length, deliveries.length];
    };
    assert.deepEqual(await look(), [false, 0, 0]);
    await rename('once', false);
    assert.deepEqual(await look(), [true, 1, 1]);
  });

  test('no change commits where its event cannot be written', async () => {
    const shop = await Shop.open(t.url);
    const { db } = t.app.store;
    // The next number is taken: the insert of the event will fail.
    const blocker = { id: ids('evt'), account_id: 'acc', project_id: shop.project, type: 'alert.fired' as const };
    await db
      .insertInto('event')
      .values({ ...blocker, sequence: 1, body: '{}', created_at: 0 })
      .execute();
    const body = { environment: 'production', image: 'registry.example/shop:1' };
    const refused = await shop.api('POST', '/deployments', body);
    assert.equal(refused.status, 500);
    assert.deepEqual((await shop.api('GET', '/deployments')).body.data, []);
    await db.deleteFrom('event').where('id', '=', blocker.id).execute();
    await shop.released('registry.example/shop:1');
  });

  test('what a deployment tells of conforms to the published schema of its kind', async () => {
    const shop = await Shop.open(t.url);
    await shop.released('registry.example/shop:1');
    await shop.released('registry.example/shop:2');
    const rollback = await shop.api('POST', '/environments/production/rollback', {});
    await shop.reaches(rollback.body.id, 'succeeded');
    const aborted = await shop.deploy('registry.example/shop:3', { strategy: 'canary', canary_percent: 50 });
    await shop.reaches(aborted.id, 'canary');
    await shop.api('POST', `/deployments/${aborted.id}/abort`);
    await shop.reaches(aborted.id, 'failed', 'canceled');
    const { data } = (await t.call('GET', `/v1/events?project_id=${shop.project}&limit=100`)).body;
    const seen = new Set<string>();
    for (const event of data) {
      seen.add(event.type);
      assert.ok(conforms(eventSchemas[event.type as EventKind], event), JSON.stringify(event));
    }
    const ours = eventKinds.filter((kind) => kind.startsWith('deployment.') || kind.startsWith('revision.'));
    assert.deepEqual([...seen].sort(), ours.sort());
  });
});

describe('GET /events', () => {
  test('newest first, by project and kind, page by page', async () => {
    const project = await newProject();
    const kinds: EventKind[] = ['alert.fired', 'alert.resolved', 'alert.fired', 'domain.certificate_renewed'];
    for (const kind of kinds) await emit(project, kind);
    const path = `/v1/events?project_id=${project}`;
    const all = (await t.call('GET', path)).body;
    assert.deepEqual(
      all.data.map(({ sequence }: { sequence: number }) => sequence),
      [4, 3, 2, 1],
    );
    const fired = (await t.call('GET', `${path}&type=alert.fired`)).body;
    assert.deepEqual(
      fired.data.map(({ sequence }: { sequence: number }) => sequence),
      [3, 1],
    );
    const first = (await t.call('GET', `${path}&limit=3`)).body;
    assert.equal(first.page.has_more, true);
    const second = (await t.call('GET', `${path}&limit=3&cursor=${first.page.next}`)).body;
    assert.deepEqual(
      second.data.map(({ sequence }: { sequence: number }) => sequence),
      [1],
    );
    assert.equal((await t.call('GET', `${path}&type=alert.fired&cursor=${first.page.next}`)).status, 400);
    const latest = (await t.call('GET', '/v1/events?limit=1')).body;
    assert.equal(latest.data[0].id, all.data[0].id);
    assert.equal((await t.call('GET', '/v1/events?type=domain.certificate_renewed')).body.data[0].sequence, 4);
  });

  test('a token bound to a project sees its events only', async () => {
    const [mine, other] = [await newProject(), await newProject()];
    await emit(mine);
    await emit(other);
    const { body } = await t.call('POST', '/v1/tokens', {
      body: { name: 'bound', scopes: ['events:read'], project_ids: [mine] },
    });
    const as = (path: string) => call(t.url, 'GET', `/v1${path}`, { token: body.token });
    const { data } = (await as('/events')).body;
    assert.deepEqual(
      data.map(({ project_id }: { project_id: string }) => project_id),
      [mine],
    );
    const foreign = (await t.call('GET', `/v1/events?project_id=${other}`)).body.data[0];
    assert.equal((await as(`/events/${foreign.id}`)).body.error.code, 'event_not_found');
    assert.equal((await as(`/events?project_id=${other}`)).body.error.code, 'project_not_found');
    assert.equal((await as(`/events/stream?project_id=${other}`)).body.error.code, 'project_not_found');
    const follower = await Follower.open('', {}, body.token);
    await emit(other);
    await emit(mine);
    await follower.has(1);
    assert.deepEqual(
      follower.events.map(({ data }) => (data as unknown as { project_id: string }).project_id),
      [mine],
    );
    follower.close();
  });
});

describe('GET /events/stream', () => {
  test('200 with what happens from now on, in order, without polling', async (c) => {
    const project = await newProject();
    await emit(project);
    // This stream never polls: only a notification can bring it an event.
    const start = globalThis.setInterval;
    const intervals = c.mock.method(globalThis, 'setInterval', () => start(() => {}, 3600_000));
    const follower = await Follower.open(`?project_id=${project}`);
    intervals.mock.restore();
    assert.ok(intervals.mock.callCount() > 0, 'the stream polls with setInterval');
    assert.equal(follower.status, 200);
    assert.equal(follower.headers.get('content-type'), 'text/event-stream');
    assert.match(follower.headers.get('x-ratelimit-remaining')!, /^\d+$/);
    await emit(project, 'alert.resolved');
    const [event] = await follower.has(1);
    assert.deepEqual([event!.event, event!.data.sequence], ['alert.resolved', 2]);
    assert.equal(event!.id, event!.data.id);
    for (let n = 0; n < 250; n++) await emit(project);
    const events = await follower.has(251);
    assert.deepEqual(
      events.map(({ data }) => data.sequence),
      events.map((_, index) => index + 2),
    );
    follower.close();
  });

  test('Last-Event-ID resumes after that event, and a filter holds', async () => {
    const project = await newProject();
    for (const kind of ['alert.fired', 'alert.resolved', 'alert.fired', 'alert.resolved'] as const)
      await emit(project, kind);
    const { data } = (await t.call('GET', `/v1/events?project_id=${project}`)).body;
    const first = data.at(-1).id;
    const follower = await Follower.open(`?project_id=${project}`, { 'last-event-id': first });
    await follower.has(3);
    assert.deepEqual(
      follower.events.map(({ data }) => data.sequence),
      [2, 3, 4],
    );
    follower.close();
    const resolved = await Follower.open(`?project_id=${project}&type=alert.resolved`, { 'last-event-id': first });
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
    test('nothing is missed where transactions commit in another order than their ids', async () => {
      const [slow, fast] = [await newProject(), await newProject()];
      const follower = await Follower.open();
      const { promise: hold, resolve: release } = Promise.withResolvers<void>();
      const { promise: written, resolve: wrote } = Promise.withResolvers<void>();
      const late = t.app.store.db.transaction().execute(async (tx) => {
        await emitIn(tx, slow);
        wrote();
        await hold;
      });
      await written;
      await emit(fast);
      await until('the fast one to be committed', async () =>
        (await t.call('GET', `/v1/events?project_id=${fast}`)).body.data.length === 1 ? true : undefined,
      );
      assert.deepEqual(follower.events, [], 'what could still be preceded is not shown yet');
      release();
      await late;
      const events = await follower.has(2);
      assert.deepEqual(
        events.map(({ data }) => (data as unknown as { project_id: string }).project_id),
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
    assert.ok(Date.now() - startedAt < 4000, `${Date.now() - startedAt} ms`);
  });
});

test('what is older than it has to be kept goes, a little at a time; what is pending stays', async () => {
  const { db } = t.app.store;
  const project = await newProject();
  const account_id = await accountOf(project);
  const webhook = await t.call('POST', '/v1/webhooks', {
    body: { url: 'http://127.0.0.1:9/', events: ['*'], project_id: project },
  });
  await t.call('PATCH', `/v1/webhooks/${webhook.body.id}`, { body: { state: 'paused' } });
  const cutoffMs = Date.now() - 90 * 24 * 3600_000;
  const oldIds = createIds({ now: () => cutoffMs - 1000 });
  const rows = Array.from({ length: 1200 }, (_, n) => ({ event: oldIds('evt'), delivery: oldIds('dlv'), n }));
  for (const { event, delivery, n } of rows) {
    const common = { type: 'alert.fired' as const, created_at: cutoffMs - 1000 };
    await db
      .insertInto('event')
      .values({ id: event, account_id, project_id: project, sequence: 1000 + n, body: '{}', ...common })
      .execute();
    const state = n % 100 === 0 ? ('pending' as const) : ('succeeded' as const);
    const rest = {
      position: 0,
      due_at: 0,
      lease: null,
      lease_until: 0,
      attempts: 1,
      tried: 1,
      test_body: null,
      finished_at: null,
    };
    await db
      .insertInto('delivery')
      .values({ id: delivery, webhook_id: webhook.body.id, event_id: event, state, ...rest, ...common })
      .execute();
  }
  await emit(project);
  let rounds = 0;
  while (await sweepOld(db, cutoffMs)) assert.ok(++rounds < 10);
  assert.ok(rounds >= 2, 'in batches');
  const left = await db.selectFrom('event').select('id').where('project_id', '=', project).execute();
  assert.equal(left.filter(({ id }) => id < idFloor('evt', cutoffMs)).length, 12);
  assert.equal(left.length, 13);
  const deliveries = await db
    .selectFrom('delivery')
    .select('state')
    .where('webhook_id', '=', webhook.body.id)
    .execute();
  assert.equal(deliveries.length, 13);
});

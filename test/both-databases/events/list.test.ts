// The list of events, and what a token may see of it.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { EventKind } from '../../../src/contract/events.ts';
import { call } from '../../helpers/app.ts';
import { emit } from '../../helpers/emit.ts';
import { Follower } from '../../helpers/follower.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

const t = sharedApp({ tokenLimit: 1_000_000 });

describe('GET /events', () => {
  test('newest first, by project and kind, page by page', async () => {
    const project = await t.newProject();
    const kinds: EventKind[] = ['alert.fired', 'alert.resolved', 'alert.fired', 'domain.certificate_renewed'];
    for (const kind of kinds) await emit(t.app.store.db, project, kind);
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
    const [mine, other] = [await t.newProject(), await t.newProject()];
    await emit(t.app.store.db, mine);
    await emit(t.app.store.db, other);
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
    const follower = await Follower.open(t.url, { token: body.token });
    await emit(t.app.store.db, other);
    await emit(t.app.store.db, mine);
    await follower.has(1);
    assert.deepEqual(
      follower.events.map(({ data }) => data.project_id),
      [mine],
    );
    follower.close();
  });
});

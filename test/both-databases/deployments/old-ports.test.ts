// Health checks end with what they are about: the port of an instance that is gone may be another program's tomorrow.
import assert from 'node:assert/strict';
import { subscribe } from 'node:diagnostics_channel';
import type { ClientRequest } from 'node:http';
import { describe, test } from 'node:test';
import { sql } from 'kysely';
import { onPostgres } from '../../helpers/app.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { quick, Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';
import { image } from './deployments-fixture.ts';

const t = sharedApp({ tokenLimit: 1_000_000 });

/** Health checks that this process tries, by port: of ports that are closed too, and without the routers' own connections. */
const tried = new Map<number, number>();
subscribe('http.client.request.start', (message) => {
  const { request } = message as { request: ClientRequest };
  if (request.getHeader('user-agent') !== 'sluice-health') return;
  const { port } = new URL(`http://${request.getHeader('host')}`);
  tried.set(Number(port), (tried.get(Number(port)) ?? 0) + 1);
});

describe('health checks', () => {
  /** A project whose one instance is healthy and probed every second. */
  async function probed(): Promise<{ shop: Shop; port: number }> {
    const shop = await Shop.open(t.url, { health_check: { ...quick.health_check, path: '/' } });
    await shop.released(image(1));
    const { port } = await t.app.store.db
      .selectFrom('instance')
      .select('port')
      .where('project_id', '=', shop.project)
      .executeTakeFirstOrThrow();
    await isProbed(Number(port), 2);
    return { shop, port: Number(port) };
  }

  async function isProbed(port: number, times: number): Promise<void> {
    const enough = (tried.get(port) ?? 0) + times;
    await until(`${times} probes of ${port}`, () => (tried.get(port) ?? 0) >= enough);
  }

  /** For as long as another instance is probed three times. */
  async function assertLeftAlone(port: number, other: number): Promise<void> {
    const before = tried.get(port);
    await isProbed(other, 3);
    assert.equal(tried.get(port), before, 'the old port is left alone');
  }

  test('of a deleted project end at once', async () => {
    const [deleted, other] = await Promise.all([probed(), probed()]);
    // Calm: without the deletion, the next pass would be seconds away.
    await isProbed(deleted.port, 2);
    assert.equal((await deleted.shop.api('DELETE', '')).status, 204);
    await isProbed(other.port, 1);
    await assertLeftAlone(deleted.port, other.port);
  });

  if (onPostgres) {
    test('end with the lease of the environment', async () => {
      const [lost, other] = await Promise.all([probed(), probed()]);
      await t.app.store.db
        .updateTable('environment_lease')
        .set({ owner: 'another process', until: Date.now() + 600_000, fence: sql`default` })
        .where('project_id', '=', lost.shop.project)
        .execute();
      const rests = async () => {
        const before = tried.get(lost.port);
        // A check that is not answered takes as long as two or three others.
        await isProbed(other.port, 6);
        return tried.get(lost.port) === before;
      };
      await until('the process to notice', rests, 30_000);
      await assertLeftAlone(lost.port, other.port);
    });
  }
});

// Health checks end with what they are about: the port of an instance that is gone may be another program's tomorrow.
import assert from 'node:assert/strict';
import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { onPostgres } from '../../helpers/app.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { until } from '../../helpers/wait.ts';
import { image } from './deployments-fixture.ts';

const t = sharedApp({ tokenLimit: 1_000_000 });

/** Connections that this process tries, by port: to ports that are closed too. */
const tried = new Map<number, number>();
subscribe('net.client.socket', (message) => {
  const { socket } = message as { socket: Socket };
  socket.on('connectionAttempt', (_host: string, port: number) => tried.set(port, (tried.get(port) ?? 0) + 1));
});

describe('health checks', () => {
  /** A project whose one instance is healthy and probed every second. */
  async function probed(): Promise<{ shop: Shop; port: number }> {
    const shop = await Shop.open(t.url);
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
    await until(`${times} probes of ${port}`, () => (tried.get(port) ?? 0) >= enough, 20_000);
  }

  /** For as long as another instance is probed three times. */
  async function assertLeftAlone(port: number, other: number): Promise<void> {
    const before = tried.get(port);
    await isProbed(other, 3);
    assert.equal(tried.get(port), before, 'the old port is left alone');
  }

  test('of a deleted project end at once', async () => {
    const [deleted, other] = await Promise.all([probed(), probed()]);
    // Calm: without the deletion, the next look would be seconds away.
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
        .set({ owner: 'another process', until: Date.now() + 600_000 })
        .where('project_id', '=', lost.shop.project)
        .execute();
      const rests = async () => {
        const before = tried.get(lost.port);
        await isProbed(other.port, 3);
        return tried.get(lost.port) === before;
      };
      await until('the process to notice', rests, 30_000);
      await assertLeftAlone(lost.port, other.port);
    });
  }
});

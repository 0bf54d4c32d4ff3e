// Events, deliveries and their end: what PostgreSQL carries of them a second. Sending itself, which another processor can
// do, is measured by `npm run bench -- webhooks`.
import { insertEvent } from '../../src/events/outbox.ts';
import { deleteTrafficBefore } from '../../src/traffic/traffic-queries.ts';
import type { Claimed, Outcome } from '../../src/webhooks/delivery-queue.ts';
import { sweepOld } from '../../src/webhooks/delivery-sweep.ts';
import { openQueue } from '../../src/webhooks/delivery-worker.ts';
import { costOf, reportCost } from './cost.ts';
import { accounts, fillDeliveries, type Installation, idOf } from './scale-installation.ts';

/** Each in a transaction of its own, of different projects, with one delivery. */
export async function measureEvents({ app, server, ids, clock }: Installation, count: number): Promise<void> {
  const { db } = app.store;
  for (const atOnce of [1, 8]) {
    let next = 0;
    const insertAll = async () => {
      while (next < count) {
        const n = next++ % accounts;
        const subject = { type: 'deployment.succeeded', accountId: idOf('acc', n), projectId: idOf('prj', n) } as const;
        const data = { text: 'x'.repeat(900) };
        await db.transaction().execute((tx) => insertEvent(tx, { ids, clock }, { ...subject, data }));
      }
    };
    const cost = await costOf(server, async () => {
      await Promise.all(Array.from({ length: atOnce }, insertAll));
      return count;
    });
    reportCost(`events with a delivery, ${atOnce} at once`, 'event', cost);
  }
}

const outcomeOf = ({ id, webhook_id, lease, attempts }: Claimed, nowMs: number): Outcome => ({
  ...{ id, webhook_id, lease, number: attempts + 1, at: nowMs, duration_ms: 12, status: 200, error: null },
  ...{ answer: 'ok', state: 'succeeded', tried: 1, due_at: nowMs, finished_at: nowMs },
});

/** Claimed and completed as a dispatcher does it, without sending. */
export async function measureDeliveries(installation: Installation, count: number): Promise<void> {
  const { app, server, databaseUrl, clock } = installation;
  const { db } = app.store;
  for (const processes of [1, 3]) {
    await fillDeliveries(db, processes, count, clock.now());
    const cost = await costOf(server, async () => {
      const all = Array.from({ length: processes }, (_, n) => drain(`process ${n}`));
      return (await Promise.all(all)).reduce((sum, one) => sum + one, 0);
    });
    reportCost(`deliveries claimed and completed, ${processes} at once`, 'delivery', cost);
  }

  async function drain(name: string): Promise<number> {
    const queue = await openQueue({ db, databaseUrl, onConnectionLost: () => {} });
    let done = 0;
    for (let claims = 0; ; claims++) {
      const nowMs = clock.now();
      const request = { loads: new Map(), most: 3000, atOnce: 2000, accounts: new Map(), lease: `${name}.${claims}` };
      const claimed = await queue.claim({ ...request, nowMs, untilMs: nowMs + 30_000 });
      for (let i = 0; i < claimed.length; i += 200) {
        await queue.complete(claimed.slice(i, i + 200).map((one) => outcomeOf(one, nowMs)));
      }
      done += claimed.length;
      if (claimed.length === 0) break;
    }
    await queue.close();
    return done;
  }
}

/** What is older than its retention, as many as fit into the time. */
export async function measureRetention({ app, server, clock }: Installation, withinMs: number): Promise<void> {
  const { db } = app.store;
  const rowsLeft = async () => {
    const rows = await Promise.all(
      (['delivery', 'attempt', 'event'] as const).map((table) =>
        db
          .selectFrom(table)
          .select((e) => e.fn.countAll().as('all'))
          .executeTakeFirstOrThrow(),
      ),
    );
    return rows.reduce((sum, { all }) => sum + Number(all), 0);
  };
  const before = await rowsLeft();
  const future = clock.now() + 86_400_000;
  const swept = { after: '' };
  const old = await costOf(server, async () => {
    for (const endAt = Date.now() + withinMs; Date.now() < endAt && (await sweepOld(db, future, swept)); );
    return before - (await rowsLeft());
  });
  reportCost('old events, deliveries and attempts deleted', 'row', old);
  const countTraffic = async () =>
    Number(
      (
        await db
          .selectFrom('traffic')
          .select((e) => e.fn.countAll().as('all'))
          .execute()
      )[0]!.all,
    );
  const measured = await countTraffic();
  const traffic = await costOf(server, async () => {
    while (await deleteTrafficBefore(db, future));
    return measured - (await countTraffic());
  });
  reportCost('old measurements deleted', 'row', traffic);
}

// The service under soak, in a process of its own that will be killed: it makes events in the transactions of changes
// until there are as many as wanted, over all the lives of the process, and tells how far it is.
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { insertEvent } from '../../src/events/outbox.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createIds } from '../../src/lib/ids.ts';

const { SOAK_EVENTS, ...env } = process.env;
const wanted = Number(SOAK_EVENTS);
const app = await createApp(readConfig(env, false), {
  tokenLimit: 1_000_000,
  webhookTimings: {
    scheduleMs: [100, 200, 400, 800, ...Array.from({ length: 40 }, () => 1000)],
    timeoutMs: 2000,
    leaseMs: 5000,
  },
});
const { db } = app.store;
const ids = createIds(systemClock);
const writers = 8;

async function produced(): Promise<number> {
  const row = await db
    .selectFrom('event')
    .select((e) => e.fn.countAll<number>().as('n'))
    .executeTakeFirstOrThrow();
  return Number(row.n);
}

async function produce(): Promise<void> {
  const projects = await db.selectFrom('project').select(['id', 'account_id']).orderBy('id').execute();
  let left = wanted - (await produced());
  const write = async () => {
    while (left > 0) {
      const n = left--;
      const { id: projectId, account_id: accountId } = projects[n % projects.length]!;
      await db.transaction().execute(async (tx) => {
        await tx.updateTable('project').set({ updated_at: Date.now() }).where('id', '=', projectId).execute();
        const data = { value: n, text: 'Käse 🧀'.repeat(1 + (n % 20)) };
        await insertEvent(tx, { ids, clock: systemClock }, { type: 'alert.fired', accountId, projectId, data });
      });
    }
  };
  await Promise.all(Array.from({ length: writers }, write));
}

process.on('SIGTERM', async () => {
  await app.stop();
  process.exit(0);
});
process.on('message', (message) => {
  if (message === 'produce') void produce().catch((error) => console.error(error));
});
process.send!({ url: app.apiUrl() });
setInterval(async () => {
  const row = await db
    .selectFrom('delivery')
    .select((e) => e.fn.countAll<number>().as('n'))
    .where('state', '=', 'pending')
    .executeTakeFirstOrThrow();
  process.send!({ produced: await produced(), pending: Number(row.n) });
}, 1000);

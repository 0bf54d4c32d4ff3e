// The control process is killed again and again during rollouts, under load: no visitor notices, each request counts
// once, and each rollout ends as one that nothing disturbed.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { isolatedEnv } from '../helpers/app.ts';
import { childrenOf } from '../helpers/children.ts';
import { ask } from '../helpers/router.ts';
import { type Load, startLoad } from '../helpers/router-control.ts';
import { type Service, startService } from '../helpers/service.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';

/** An even number; `npm run soak -- planes` takes more. */
const kills = Number(process.env.SLUICE_TEST_KILLS ?? 2);
const requests = Number(process.env.SLUICE_TEST_REQUESTS ?? 1500);

const rollout = { strategy: 'canary', canary_percent: 20 };
const replicas = 2;
const policy = { replicas, drain_s: 1, canary: { warmup_s: 0, bake_s: 2, steps: [50], min_requests: 10 } };

const imageOf = (kill: number) => `shop:after-${kill}`;

async function killControl({ child }: Service): Promise<void> {
  const pid = childrenOf(child.pid!, 'control.js')[0]!;
  process.kill(pid, 'SIGKILL');
  await until('the next one', () => childrenOf(child.pid!, 'control.js').some((other) => other !== pid), 30_000);
}

interface Visitors {
  visits(): number;
  load: Load;
  /** What the next visitor sees. */
  image(): Promise<string>;
}

/** Visits over kept connections, and one in four over a new one. */
function visitorsOf({ host }: Shop): Visitors {
  const [name, port] = host.split(':');
  let visits = 0;
  const visit = () => ask(Number(port), { host: name!, headers: ++visits % 4 === 0 ? { connection: 'close' } : {} });
  return { visits: () => visits, load: startLoad(8, visit), image: async () => JSON.parse((await visit()).body).image };
}

test('kill -9 of the control process during rollouts: no request fails, each rollout ends as it would have', {
  timeout: 1_800_000,
}, async () => {
  const { env, dataDir, clean } = await isolatedEnv();
  const service = startService({ ...env, SLUICE_ROUTER_WORKERS: '2' });
  try {
    const shop = await Shop.open(await service.url, policy);
    shop.pollMs = 200;
    shop.isKilled = true;
    await shop.released('shop:before');
    const visitors = visitorsOf(shop);
    try {
      await killDuringRollouts(service, shop, visitors);
      await until('everybody sees the last', async () => (await visitors.image()) === imageOf(kills - 1));
    } finally {
      await visitors.load.stop();
    }
    assert.deepEqual(visitors.load.failed, []);
    const ask = askDatabase(dataDir);
    await until('all are stored', () => ask('select sum(requests) as n from traffic') >= visitors.visits());
    assert.equal(ask('select sum(requests) as n from traffic'), visitors.visits());
    await until('the old instances to be gone', () => ask('select count(*) as n from instance') === replicas);
    console.log(`${visitors.visits()} requests over ${kills} kills during rollouts: none failed, each counted once`);
  } finally {
    service.killAll();
    await service.exited;
    await clean();
  }
});

/** Each rollout meets two kills: while its instances start, and while its canary is observed. */
async function killDuringRollouts(service: Service, shop: Shop, visitors: Visitors): Promise<void> {
  for (let kill = 1; kill <= kills; kill += 2) {
    const { id } = await shop.deploy(imageOf(kill), rollout);
    await killControl(service);
    await shop.reaches(id, 'canary');
    await killControl(service);
    const { timeline } = await shop.reaches(id, 'succeeded');
    assert.deepEqual(
      timeline.map(({ state }) => state),
      ['queued', 'preparing', 'starting', 'canary', 'canary', 'promoting', 'succeeded'],
    );
    await until('requests', () => visitors.visits() >= (requests * (kill + 1)) / kills, 900_000);
  }
}

const askDatabase = (dataDir: string) => (query: string) => {
  const database = new DatabaseSync(join(dataDir, 'sluice.db'), { readOnly: true });
  try {
    return (database.prepare(query).get() as { n: number }).n;
  } finally {
    database.close();
  }
};

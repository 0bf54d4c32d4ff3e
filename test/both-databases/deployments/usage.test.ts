// What instances use: who measures it, and how it is read.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { databaseLeases, onlyProcess } from '../../../src/deployments/reconcile/environment-leases.ts';
import { measureUsage } from '../../../src/deployments/usage-meter.ts';
import { deleteUsageBefore, insertUsage } from '../../../src/deployments/usage-queries.ts';
import { runSets } from '../../../src/engines/engine.ts';
import { createStandinEngine } from '../../../src/engines/standin/standin.ts';
import { createLog } from '../../../src/lib/log.ts';
import { onPostgres } from '../../helpers/app.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

const nowMs = Date.parse('2026-11-15T08:30:00.000Z');
const createdMs = nowMs - 3_600_000;
let isNow = createdMs;
const clock = { now: () => isNow };
const t = sharedApp({ tokenLimit: 1_000_000, clock, env: { SLUICE_ROLES: 'api' } });

const at = (agoS: number) => new Date(nowMs - agoS * 1000).toISOString();
const used = (project: string, instance: string, agoS: number, memory_bytes: number, cpu_ms: number) => ({
  project_id: project,
  environment: 'production',
  revision: 1,
  instance_id: instance,
  at: nowMs - agoS * 1000,
  memory_bytes,
  cpu_ms,
});

async function projectAt(ms: number): Promise<string> {
  isNow = ms;
  const id = await t.newProject();
  isNow = nowMs;
  return id;
}

async function insertInstances(project: string, ids: string[]): Promise<void> {
  const row = { project_id: project, environment: 'production', revision: 1, region: 'local', host: null, port: null };
  for (const id of ids)
    await t.app.store.db
      .insertInto('instance')
      .values({ ...row, id, state: 'healthy', created_at: nowMs, state_since: nowMs })
      .execute();
}

test('a series for every instance, newest first: the most memory of a step, CPU by the difference of counts', async () => {
  const project = await projectAt(createdMs);
  const { db } = t.app.store;
  const rows = [
    used(project, 'ins_a', 65, 100, 1000),
    used(project, 'ins_a', 55, 300, 6000),
    used(project, 'ins_a', 45, 200, 7000),
    used(project, 'ins_a', 35, 250, 17_000),
    used(project, 'ins_b', 5, 50, 10),
    used(project, 'ins_old', 4000, 1, 1),
  ];
  await insertUsage(db, rows);
  await insertUsage(db, rows.slice(0, 2)); // measured by two processes at once: no harm
  const get = (query: string) => t.call('GET', `/v1/projects/${project}/environments/production/usage?${query}`);
  const { status, body } = await get(`from=${at(60)}&to=${at(0)}&step_s=20`);
  assert.equal(status, 200, JSON.stringify(body));
  const limits = { memory_mb: 512, cpus: 1 };
  const none = { memory_bytes: null, cpus: null };
  assert.deepEqual(body, {
    from: at(60),
    to: at(0),
    step_s: 20,
    series: [
      {
        ...{ instance: 'ins_b', revision: 'r1', limits },
        points: [
          { at: at(60), ...none },
          { at: at(40), ...none },
          { at: at(20), memory_bytes: 50, cpus: null },
        ],
      },
      {
        ...{ instance: 'ins_a', revision: 'r1', limits },
        points: [
          { at: at(60), memory_bytes: 300, cpus: 0.3 },
          { at: at(40), memory_bytes: 250, cpus: 1 },
          { at: at(20), ...none },
        ],
      },
    ],
  });
  assert.equal((await get('')).body.series.length, 2, 'the last hour, since the environment was created');
  assert.deepEqual((await get('revision=r2')).body.series, []);
  assert.equal((await get('step_s=7')).status, 400);
  assert.equal((await t.call('GET', `/v1/projects/${project}/environments/none/usage`)).status, 404);

  await deleteUsageBefore(db, nowMs - 30_000);
  assert.deepEqual(
    (await get('')).body.series.map(({ instance }: { instance: string }) => instance),
    ['ins_b'],
  );
});

test('/metrics has the latest measurement of every instance that is there', async () => {
  const project = await projectAt(createdMs);
  await insertInstances(project, ['ins_here', 'ins_silent']);
  await insertUsage(t.app.store.db, [
    used(project, 'ins_here', 20, 1000, 2000),
    used(project, 'ins_here', 10, 3000, 4500),
    used(project, 'ins_silent', 600, 3000, 4000),
    used(project, 'ins_gone', 10, 1, 1),
  ]);
  const { body } = await t.call('GET', '/metrics');
  const lines = (body as string).split('\n').filter((line) => line.includes(project));
  const labels = `{project="${project}",environment="production",revision="r1",instance="ins_here"}`;
  assert.deepEqual(lines, [
    `sluice_instance_memory_bytes${labels} 3000`,
    `sluice_instance_cpu_seconds_total${labels} 4.5`,
  ]);
});

test('one process measures an environment: the one that reconciles it', async () => {
  const project = await projectAt(createdMs);
  await insertInstances(project, ['ins_1', 'ins_2']);
  const { db } = t.app.store;
  const key = { projectId: project, environment: 'production' };
  const asked: string[][] = [];
  const engine = {
    ...runSets(createStandinEngine()),
    async usage(ids: string[]) {
      asked.push(ids.filter((id) => id !== 'ins_here' && id !== 'ins_silent').toSorted());
      return new Map([['ins_1', { memoryBytes: 10, cpuMs: 20 }]]);
    },
  };
  const region = { name: 'local', engine, available: true, lastCheckedAt: null };
  const log = createLog({ level: 'silent', format: 'json' });
  const processes = onPostgres ? [1, 2].map((n) => databaseLeases(db, `run_${n}`, clock)) : [onlyProcess(db)];
  for (const leases of processes) await leases.hold(key);
  const round = async (more: object = {}) => {
    for (const { holds } of processes) await measureUsage({ db, clock, log, holds }, { ...region, ...more });
  };
  await round();
  assert.deepEqual(
    asked.filter((ids) => ids.length > 0),
    [['ins_1', 'ins_2']],
  );
  const rows = await db.selectFrom('instance_usage').selectAll().where('project_id', '=', project).execute();
  assert.deepEqual(
    rows.map((row) => ({ ...row })),
    [used(project, 'ins_1', 0, 10, 20)],
  );
  await round({ available: false });
  assert.equal(asked.length, 1, 'a region that does not answer is not asked');

  const hanging = { ...engine, usage: () => new Promise<never>(() => {}) };
  await measureUsage({ db, clock, log, holds: () => true }, { ...region, engine: hanging }, Promise.resolve(null));
});

// What one evaluation of every alert rule costs: 1,000 environments with the two rules that each has, all of them busy, then
// with a rule about latency and one over a whole day on top. On PostgreSQL with SLUICE_TEST_POSTGRES=postgres://….

import { insertAlertRule } from '../src/alerts/alert-rule-queries.ts';
import { insertDefaultRules } from '../src/alerts/default-rules.ts';
import { Watcher } from '../src/alerts/watcher.ts';
import { createApp } from '../src/app.ts';
import { readConfig } from '../src/config.ts';
import type { Db } from '../src/db/database.ts';
import { insertRevision, takeRevisionNumber } from '../src/deployments/deployment-queries.ts';
import { newEnvironment } from '../src/environments/change-environment.ts';
import { insertEnvironment } from '../src/environments/environment-queries.ts';
import { createIds } from '../src/lib/ids.ts';
import { createLoops } from '../src/lib/loops.ts';
import { insertProject } from '../src/projects/project-queries.ts';
import { latencyBoundsMs } from '../src/traffic/latency.ts';
import { bucketMs, bucketOf } from '../src/traffic/measurements.ts';
import { storeMeasurements } from '../src/traffic/traffic-queries.ts';
import { isolatedEnv } from '../test/helpers/app.ts';
import { median } from './lib/measure.ts';
import { note, report } from './lib/report.ts';

const environments = 1000;
const targetMs = 100;
const environment = 'production';
let nowMs = Date.now();
const clock = { now: () => nowMs };
const ids = createIds(clock);
const isolated = await isolatedEnv();
const app = await createApp(readConfig({ ...isolated.env, SLUICE_ROLES: 'api' }, false));
const { db } = app.store;
const watcher = new Watcher({ db, clock, ids, log: app.log, loops: createLoops(app.log) });

const projects = await db.transaction().execute((tx) => fill(tx));
await measureEvaluations(`${environments.toLocaleString('en')} environments with 2 rules`, targetMs);
await db.transaction().execute((tx) => addRules(tx, 'p95_ms', 60));
await measureEvaluations('… with one more about latency');
await db.transaction().execute((tx) => addRules(tx, 'error_rate', 86_400));
await measureEvaluations('… with one more over a day');
await app.stop();
await isolated.clean();
process.exit(0);

async function fill(tx: Db): Promise<string[]> {
  const { id: account_id } = await tx.selectFrom('account').select('id').executeTakeFirstOrThrow();
  const made: string[] = [];
  for (let n = 0; n < environments; n++) {
    const times = { created_at: nowMs, updated_at: nowMs };
    const project = { id: ids('prj'), account_id, name: `p${n}`, slug: `p-${n}`, description: null, labels: '[]' };
    await insertProject(tx, { ...project, next_sequence: 1, backlog: 0, deleted_at: null, ...times, version: 1 });
    const named = { projectId: project.id, name: environment, region: 'local', host: `p-${n}` };
    await insertEnvironment(tx, newEnvironment(named, nowMs));
    await insertDefaultRules(tx, { ids, clock }, { projectId: project.id, environment });
    await insertRevision(tx, {
      project_id: project.id,
      environment,
      number: await takeRevisionNumber(tx, { projectId: project.id, environment }),
      deployment_id: '',
      image: '',
      digest: null,
      port: 8080,
      variables_sealed: null,
      health_check: '{}',
      resources: '{}',
      state: 'active',
      traffic_percent: 100,
      restored_from: null,
      created_at: nowMs,
      activated_at: nowMs,
      retired_at: null,
    });
    await tx
      .insertInto('instance')
      .values({
        ...{ id: ids('ins'), project_id: project.id, environment, revision: 1, region: 'local', state: 'healthy' },
        ...{ host: '127.0.0.1', port: 1, created_at: nowMs, state_since: nowMs },
      })
      .execute();
    made.push(project.id);
  }
  return made;
}

async function addRules(tx: Db, metric: 'p95_ms' | 'error_rate', window_s: number): Promise<void> {
  for (const project_id of projects) {
    await insertAlertRule(tx, {
      ...{ id: ids('rul'), project_id, environment, name: `${metric} ${window_s}`, metric, comparator: 'gt' },
      ...{ threshold: metric === 'p95_ms' ? 1000 : 0.5, hostname: null, window_s, for_s: 0, severity: 'info' },
      ...{ on_canary: 'none', enabled: 1, created_at: nowMs, updated_at: nowMs, version: 1 },
    });
  }
}

/** Requests of every environment. On SQLite there is one router, on PostgreSQL there may be more. */
async function pass(ms: number): Promise<void> {
  for (const end = nowMs + ms; nowMs < end; nowMs += bucketMs) {
    const latency = latencyBoundsMs.map((bound) => (bound <= 50 ? 10 : 0)).concat(0);
    const of = { environment, revision: 1, at: bucketOf(nowMs), requests: 100, errors: 1, latency };
    for (const router of app.store.dialect === 'sqlite' ? ['a'] : ['a', 'b']) {
      for (let i = 0; i < projects.length; i += 250) {
        const part = projects.slice(i, i + 250).map((project) => ({ project, ...of }));
        await storeMeasurements(db, router, part);
      }
    }
  }
}

async function measureEvaluations(what: string, target?: number): Promise<void> {
  const cpu: number[] = [];
  const wall: number[] = [];
  await pass(300_000);
  for (let round = 0; round < 20; round++) {
    const [cpuBefore, before] = [process.cpuUsage(), performance.now()];
    await watcher.evaluateDue();
    const { user, system } = process.cpuUsage(cpuBefore);
    cpu.push((user + system) / 1000);
    wall.push(performance.now() - before);
    await pass(bucketMs);
  }
  const firing = await db.selectFrom('alert').select('id').where('resolved_at', 'is', null).execute();
  const spent = median(cpu);
  const name = `${what}: CPU time of one evaluation`;
  const value = `${spent.toFixed(0)} ms`;
  const of = `${median(wall).toFixed(0)} ms in all, ${firing.length} firing`;
  if (target === undefined) note(name, value, of);
  else report(name, value, `< ${target} ms`, spent < target, of);
}

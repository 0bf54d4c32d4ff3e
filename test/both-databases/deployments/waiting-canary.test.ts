// What a look at a canary costs that has waited for people for a day, against one that has only begun.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { measureStep } from '../../../src/deployments/canary-traffic.ts';
import type { DeploymentRow } from '../../../src/deployments/deployment-queries.ts';
import { canaryPolicyOf } from '../../../src/environments/environment-queries.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { emptyLatency } from '../../../src/traffic/latency.ts';
import { bucketMs, bucketOf } from '../../../src/traffic/measurements.ts';
import { encodeDetail, groupCount, noDetail } from '../../../src/traffic/request-detail.ts';
import { sharedApp } from '../../helpers/shared-app.ts';
import { Shop } from '../../helpers/shop.ts';
import { image } from './deployments-fixture.ts';

const t = sharedApp({ tokenLimit: 1_000_000 });
const windows = 24 * 360;
/** As many as are not summed yet. */
const recent = 30;

/** A request of each group of visitors. */
const detail = encodeDetail({
  ...noDetail(),
  groups: Object.fromEntries(
    Array.from({ length: groupCount }, (_, n) => [
      n,
      { requests: 1, failed: 0, clientErrors: 0, latency: latencyOf(1) },
    ]),
  ),
});

function latencyOf(requests: number): number[] {
  return emptyLatency().with(3, requests);
}

test('a canary that has waited for a day costs what a new one does', async () => {
  const { db } = t.app.store;
  const shop = await Shop.open(t.url, { canary: { advance: 'manual' } });
  await shop.released(image(1));
  const { id } = await shop.deploy(image(2), { strategy: 'canary', canary_percent: 50 });
  await shop.reaches(id, 'canary');
  const now = bucketOf(Date.now());
  const rows = Array.from({ length: windows }, (_, n) => [1, 2].map((revision) => rowAt(shop, revision, n))).flat();
  function rowAt({ project: project_id }: Shop, revision: number, n: number) {
    const counts = {
      requests: groupCount,
      errors: 0,
      client_errors: 0,
      latency: JSON.stringify(latencyOf(groupCount)),
    };
    const at = now - (n + 1) * bucketMs;
    return { project_id, environment: 'production', revision, at, router: 'one', detail, ...counts };
  }
  for (let from = 0; from < rows.length; from += 1000)
    await db
      .insertInto('traffic')
      .values(rows.slice(from, from + 1000))
      .execute();

  const row = await db.selectFrom('deployment').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
  const environment = db.selectFrom('environment').select('canary').where('project_id', '=', shop.project);
  const policy = canaryPolicyOf(await environment.executeTakeFirstOrThrow());
  const begunAt = (count: number): DeploymentRow => ({
    ...row,
    step_since: now - count * bucketMs,
    step_until: now,
    step_baseline: null,
  });
  const [old, fresh] = [begunAt(windows), begunAt(recent)];
  const measure = (of: DeploymentRow) => measureStep(db, systemClock, of, policy);
  // The first look of a process sums up what has settled.
  assert.ok((await measure(old)).canary.requests >= windows * groupCount);

  const cost = async (of: DeploymentRow) => {
    const before = process.cpuUsage();
    for (let n = 0; n < 10; n++) await measure(of);
    const { user, system } = process.cpuUsage(before);
    return user + system;
  };
  const turns: number[] = [];
  for (let turn = 0; turn < 7; turn++) turns.push((await cost(old)) / (await cost(fresh)));
  const median = turns.sort((a, b) => a - b)[3]!;
  assert.ok(median < 2.5, `${median} times as much`);
  assert.ok((await measure(old)).canary.requests >= windows * groupCount);
  assert.equal((await shop.api('POST', `/deployments/${id}/abort`)).status, 200);
});

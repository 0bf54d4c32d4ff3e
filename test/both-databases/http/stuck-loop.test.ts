// A background loop that hangs is seen from outside.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startApp } from '../../helpers/app.ts';
import { until } from '../../helpers/wait.ts';

test('a loop whose step does not end: /livez and /readyz name it', async () => {
  const t = await startApp();
  const step = Promise.withResolvers<void>();
  const loop = t.app.loops.start({ name: 'hanging', intervalMs: 10, limitMs: 20, step: () => step.promise });
  const stuck = () => t.call('GET', '/livez').then(({ status, body }) => status === 503 && body);
  assert.match(await until('/livez', stuck), /^loop stuck: hanging, its step began \d+ s ago\n$/);
  assert.equal((await t.call('GET', '/readyz')).status, 503);
  step.resolve();
  await loop.stop();
  assert.equal((await t.call('GET', '/livez')).status, 200);
  assert.equal((await t.call('GET', '/readyz')).status, 200);
  await t.stop();
});

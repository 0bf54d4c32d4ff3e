// When the watcher fires and resolves an alert, with a clock that the test moves: a minute takes no time.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { movedTime, Site } from '../../helpers/measured-site.ts';

const time = movedTime();

describe('the default rule about errors', () => {
  test('a revision that begins to fail: fired within window + 15 s, resolved after it recovers, one event each', async () => {
    const site = await Site.open(time);
    await site.instance('healthy');
    await time.pass(120, () => site.serve());
    assert.deepEqual(await site.kinds(), []);
    let n = 0;
    const firing = async () => (await site.alerts()).length === 1;
    const fired = await time.pass(90, () => site.serve({ errors: n++ % 5 < 3 ? 1 : 0 }), firing); // 6 %
    assert.ok(fired !== null && fired <= 75_000, `${fired} ms`);
    const [alert] = await site.alerts();
    assert.deepEqual(
      [alert!.name, alert!.revision, alert!.state, alert!.severity],
      ['Errors', 'r1', 'firing', 'critical'],
    );
    assert.ok(alert!.value > 0.05 && alert!.value < 0.06, `${alert!.value}`);
    assert.match(alert!.message, /^The error rate of r1 is 5\.\d+ % over 60 s, above 5 %\.$/);
    await time.pass(60, () => site.serve({ errors: n++ % 5 < 3 ? 1 : 0 }));
    assert.deepEqual(await site.kinds(), ['alert.fired']);
    const resolved = await time.pass(
      90,
      () => site.serve(),
      async () => (await site.alerts())[0]!.state === 'resolved',
    );
    assert.ok(resolved !== null && resolved <= 75_000, `${resolved} ms`);
    await time.pass(60, () => site.serve());
    const [after] = await site.alerts();
    assert.deepEqual(await site.told(), [
      ['alert.fired', alert],
      ['alert.resolved', after],
    ]);
    assert.equal(
      time.signalled.filter((id) => id === site.id).length,
      2,
      'of three watchers, one fired and one resolved it',
    );
  });

  test('at 100 % it takes 10 s, with minutes of good answers before', async () => {
    const site = await Site.open(time);
    await site.instance('healthy');
    await time.pass(180, () => site.serve());
    const fired = await time.pass(
      30,
      () => site.serve({ errors: 10 }),
      async () => (await site.alerts()).length === 1,
    );
    assert.ok(fired !== null && fired <= 10_000, `${fired} ms`);
  });

  test('each revision is judged separately, and the alert of one without requests resolves', async () => {
    const site = await Site.open(time);
    await site.instance('healthy');
    await time.pass(30, async () => {
      await site.serve({ revision: 1, requests: 100 });
      await site.serve({ revision: 2, requests: 1, errors: 1 });
    });
    assert.deepEqual(
      (await site.alerts()).map(({ revision, value }) => [revision, value]),
      [['r2', 1]],
    );
    await time.pass(80, () => site.serve({ revision: 1 }));
    assert.deepEqual(await site.kinds(), ['alert.fired', 'alert.resolved']);
  });
});

describe('for_s', () => {
  const rule = { metric: 'healthy_instances', comparator: 'lt', threshold: 1, for_s: 30 };

  test('a condition shorter than for_s never fires; a longer one does, and takes as long to resolve', async () => {
    const site = await Site.open(time, rule);
    for (let i = 0; i < 5; i++) {
      await site.instance('unhealthy');
      await time.pass(25);
      await site.instance('healthy');
      await time.pass(10);
    }
    assert.deepEqual(await site.kinds(), []);
    await site.instance('unhealthy');
    const fired = await time.pass(60, undefined, async () => (await site.alerts()).length === 1);
    assert.ok(fired !== null && fired >= 30_000 && fired <= 40_000, `${fired} ms`);
    for (let i = 0; i < 5; i++) {
      await site.instance('healthy');
      await time.pass(25);
      await site.instance('unhealthy');
      await time.pass(10);
    }
    assert.deepEqual(await site.kinds(), ['alert.fired'], 'one incident, however it flaps');
    await site.instance('healthy');
    const resolved = await time.pass(60, undefined, async () => (await site.alerts())[0]!.state === 'resolved');
    assert.ok(resolved !== null && resolved >= 30_000 && resolved <= 40_000, `${resolved} ms`);
    // A watcher that read the watches after another had resolved the alert may have begun one anew: the next look ends it.
    await time.pass(5);
    assert.deepEqual(
      await time.app.app.store.db.selectFrom('alert_watch').selectAll().execute(),
      [],
      'nothing is left behind',
    );
  });

  test('a restarted process continues where the last one stopped', async () => {
    const site = await Site.open(time, rule);
    await site.instance('unhealthy');
    await time.pass(20);
    time.watchers = [time.newWatcher()];
    const fired = await time.pass(60, undefined, async () => (await site.alerts()).length === 1);
    assert.ok(fired !== null && fired <= 20_000, `${fired} ms`);
  });
});

test('an alert that fires outlives a long downtime of the service without a second event', async () => {
  const site = await Site.open(time);
  await site.instance('healthy');
  const bad = () => site.serve({ errors: 5 });
  await time.pass(30, bad);
  time.nowMs += 10 * 60_000;
  time.watchers = [time.newWatcher()];
  await time.pass(20);
  await time.pass(60, bad);
  assert.deepEqual(await site.kinds(), ['alert.fired']);
  time.nowMs += 10 * 60_000;
  time.watchers = [time.newWatcher(), time.newWatcher()];
  const resolved = await time.pass(90, undefined, async () => (await site.alerts())[0]!.state === 'resolved');
  assert.ok(resolved !== null && resolved <= 75_000, `${resolved} ms`);
});

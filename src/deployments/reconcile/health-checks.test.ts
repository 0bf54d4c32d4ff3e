import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { mock, test } from 'node:test';
import { until } from '../../../test/helpers/wait.ts';
import { environmentDefaults } from '../../contract/environments.ts';
import { readOpenFileLimit } from '../../lib/open-files.ts';
import { type HealthTarget, HealthWatch, probe } from './health-checks.ts';

const key = { projectId: 'prj_1', environment: 'production' };
const check = { ...environmentDefaults.health_check, interval_s: 0.02, healthy_after: 1 };

/** A port that counts who comes. */
async function listen() {
  let count = 0;
  const server = createServer((socket) => {
    count++;
    socket.on('error', () => {}).resume();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { server, port, count: () => count };
}

const targetAt = (instance: string, port: number): HealthTarget => ({
  ...{ instance, host: '127.0.0.1', port, check, known: 'unknown' },
});

/** That many connections elsewhere are time enough for one here. */
async function assertLeftAlone(port: { count(): number }, other: { count(): number }): Promise<void> {
  const [before, after] = [port.count(), other.count() + 10];
  await until('connections elsewhere', () => other.count() >= after);
  assert.ok(port.count() <= before + 1, 'at most a probe that was under way');
}

test('what a pass no longer names is no longer probed, nor an address that is no longer the instance’s', async () => {
  const [old, moved, kept] = await Promise.all([listen(), listen(), listen()]);
  const watch = new HealthWatch({ now: () => 0 }, () => {}, probe);
  try {
    watch.watch(key, [targetAt('a', old.port), targetAt('b', moved.port), targetAt('c', kept.port)]);
    await until('all to be healthy', () => ['a', 'b', 'c'].every((id) => watch.healthOf(id) === 'healthy'));
    watch.watch(key, [targetAt('b', kept.port), targetAt('c', kept.port)]);
    await assertLeftAlone(old, kept);
    await assertLeftAlone(moved, kept);
    assert.deepEqual([watch.healthOf('a'), watch.healthOf('b')], ['unknown', 'healthy']);
    watch.watch(key, []);
    assert.equal(watch.healthOf('c'), 'unknown');
  } finally {
    watch.stop();
    for (const { server } of [old, moved, kept]) server.close();
  }
});

test('a watch that no pass renews ends by itself, as in a process that was paused and has lost its lease', async () => {
  const [lost, kept] = await Promise.all([listen(), listen()]);
  const other = { ...key, environment: 'staging' };
  let nowMs = 0;
  const watch = new HealthWatch({ now: () => nowMs }, () => {}, probe);
  try {
    watch.watch(key, [targetAt('a', lost.port)]);
    watch.watch(other, [targetAt('b', kept.port)]);
    await until('both to be healthy', () => ['a', 'b'].every((id) => watch.healthOf(id) === 'healthy'));
    nowMs = 20_000;
    watch.watch(other, [targetAt('b', kept.port)]);
    await assertLeftAlone(lost, kept);
    assert.equal(watch.healthOf('a'), 'unknown');
  } finally {
    watch.stop();
    for (const { server } of [lost, kept]) server.close();
  }
});

/** Takes all descriptors that this process may have, while `work` runs. */
async function withoutDescriptors<T>(work: () => Promise<T>): Promise<T> {
  const setLimit = (limit: number) => execFileSync('prlimit', ['--pid', String(process.pid), `--nofile=${limit}:`]);
  const before = readOpenFileLimit()!;
  setLimit(400);
  const open: number[] = [];
  const takeAll = () => {
    try {
      for (;;) open.push(openSync('/dev/null', 'r'));
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'EMFILE');
    }
  };
  // What earlier tests of the process still close gives some back.
  const taking = setInterval(takeAll, 5);
  try {
    takeAll();
    return await work();
  } finally {
    clearInterval(taking);
    for (const file of open) closeSync(file);
    setLimit(before);
  }
}

test('out of descriptors, this process says nothing about instances, and says so once', async () => {
  const there = await listen();
  const unable: string[] = [];
  const watch = new HealthWatch(
    { now: () => 0 },
    () => {},
    probe,
    (reason) => unable.push(reason),
  );
  try {
    watch.watch(key, [targetAt('a', there.port)]);
    await until('it to be healthy', () => watch.healthOf('a') === 'healthy');
    await withoutDescriptors(async () => {
      await until('a check that does not work', () => unable.length > 0);
      const sinceMs = performance.now();
      await until('many more of them', () => performance.now() - sinceMs > 20 * 1000 * check.interval_s);
      assert.equal(watch.healthOf('a'), 'healthy');
      for (const path of [null, '/']) {
        const result = await probe({ host: '127.0.0.1', port: there.port, path, timeoutMs: 1000 });
        assert.match('unable' in result ? result.unable : 'able', /EMFILE/);
      }
    });
    assert.equal(unable.length, 1);
  } finally {
    watch.stop();
    there.server.close();
  }
});

test('a process that stood still while it waited does not call an instance slow', async () => {
  const there = await listen();
  try {
    const answered = probe({ host: '127.0.0.1', port: there.port, path: '/', timeoutMs: 100 });
    await new Promise<void>((resolve) => {
      setTimeout(() => {
        const startedAt = performance.now();
        while (performance.now() - startedAt < 600);
        resolve();
      }, 1);
    });
    assert.deepEqual(await answered, { unable: 'this process stood still' });
  } finally {
    there.server.close();
  }
});

test('a connection that stays open counts as far as the engine does not say that nothing listens behind it', async () => {
  const there = await listen();
  const probed = (listens: () => Promise<boolean | null>) =>
    probe({ host: '127.0.0.1', port: there.port, path: null, timeoutMs: 10_000, listens });
  try {
    assert.deepEqual(await probed(async () => true), { ok: true, listens: true });
    const refused = await probed(async () => false);
    assert.ok('ok' in refused && !refused.ok && refused.fault === 'no_connection', JSON.stringify(refused));
    assert.deepEqual(await probed(async () => null), { ok: true });
    assert.deepEqual(await probed(() => Promise.reject(new Error('the engine is away'))), { ok: true });
    assert.deepEqual(await probed(() => new Promise(() => {})), { ok: true }, 'an engine that hangs holds up nothing');
  } finally {
    there.server.close();
  }
});

test('one that starts is probed at once, soon again while it fails, and ten times a second from then on', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  const probed: number[] = [];
  let nowMs = 0;
  const listensAt = 400;
  const takesMs = 30;
  const watch = new HealthWatch(
    { now: () => nowMs },
    () => {},
    async () => {
      probed.push(nowMs);
      if (nowMs < listensAt) return { ok: false, fault: 'no_connection', message: 'refused' };
      nowMs += takesMs;
      return { ok: true };
    },
  );
  try {
    watch.watch(key, [{ ...targetAt('a', 1), check: { ...check, interval_s: 2, healthy_after: 3 } }]);
    while (nowMs < 1000) {
      nowMs++;
      mock.timers.tick(1);
      await new Promise((resolve) => setImmediate(resolve));
    }
    const gaps = probed.slice(1).map((at, i) => at - probed[i]!);
    const failed = probed.filter((at) => at < listensAt).length;
    assert.equal(probed[0], 0);
    assert.ok(failed >= 6 && gaps[0]! < 20, `${gaps}`);
    assert.ok(
      gaps.slice(0, failed).every((gap, i, all) => gap <= 102 && gap >= (all[i - 1] ?? 0)),
      `${gaps}`,
    );
    const confirmed = gaps.slice(failed);
    assert.equal(confirmed.length, 2, 'three successes make it healthy');
    for (const gap of confirmed) assert.ok(gap >= 100 && gap <= 102, `${gaps}`);
    assert.equal(watch.healthOf('a'), 'healthy');
  } finally {
    watch.stop();
    mock.timers.reset();
  }
});

// What everything above the engines relies on, as tests that every engine passes. How an engine is brought to run a
// program that ends, stays or talks differs; that is in its fixtures.
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import type { Engine, EngineInstance } from '../../src/engines/engine.ts';
import { disorderMs, positionBehind } from '../../src/lib/log-position.ts';
import { collect, endOfLine, textsOf } from '../helpers/followed-lines.ts';
import { answers, type InstanceAddress, ids, specOf, start, startReady, type Workload } from '../helpers/instances.ts';
import { until } from '../helpers/wait.ts';
import { assertAway, isFault } from './faults.ts';

export interface EngineFixtures {
  /** A new engine object; those of one installation see the same instances if the engine outlives the process. */
  create(installation: string): Promise<Engine>;
  outlivesProcess: boolean;
  /** Answers HTTP with its image, revision and instance. */
  web: Workload;
  missing: Workload;
  /** Ends at once, with this code. */
  exits: Workload & { exitCode: number };
  /** Does not end when asked to, once it is occupied. */
  stubborn: Workload & { occupy?(address: InstanceAddress): Promise<void> };
  /** Says something on both streams, once it is provoked. */
  chatty: Workload & { provoke?(address: InstanceAddress): Promise<void>; lines: number };
  /** It starts programs again that ended, until it is told to stop. */
  restartsPrograms?: true;
  /** Programs are told what it calls them, and not what we do. */
  namesInstances?: true;
  /** It does not say which stream a line came from. */
  mixesStreams?: true;
  /** It leaves images to their registries, so preparing one needs no engine. */
  preparesWithout?: true;
  /** Takes the engine away and brings it back, where that is possible. */
  outage?: { begin(): Promise<void>; end(): Promise<void> };
}

const limitMs = 60_000;
const stopMarginMs = 10_000;
const graceMs = 2000;

const findIn = (instances: EngineInstance[], id: string) => instances.find((instance) => instance.id === id);

/** In place of fixtures, why there are none here. */
export function engineConformance(name: string, fixtures: EngineFixtures | string): void {
  if (typeof fixtures === 'string') {
    test(`${name} engine`, { skip: fixtures });
    return;
  }
  const { web, missing, exits, stubborn, chatty, outage } = fixtures;
  describe(`${name} engine`, { timeout: 5 * limitMs }, () => {
    const made: Engine[] = [];
    const create = async (installation = ids('installation')) => {
      const engine = await fixtures.create(installation);
      made.push(engine);
      return engine;
    };
    afterEach(async () => {
      for (const engine of made.splice(0)) {
        for (const { id } of await engine.list()) await engine.stop(id, 0);
        await engine.close();
      }
    });
    const check = (what: string, work: () => Promise<void>) => test(what, { timeout: limitMs }, work);

    check('answers a probe', async () => {
      const engine = await create();
      await engine.probe();
    });

    check('resolves an image to its digest, and to the same one when the image is named by digest', async () => {
      const engine = await create();
      const { image, variables } = web;
      const { digest } = await engine.prepare(image, variables);
      assert.match(digest, /^sha256:[0-9a-f]{64}$/);
      assert.equal((await engine.prepare(image, variables)).digest, digest);
      const exact = `${image.replace(/:\w+$/, '')}@${digest}`;
      assert.equal((await engine.prepare(exact, variables)).digest, digest);
    });

    check('reports an image that does not exist', async () => {
      const engine = await create();
      const { image, variables } = missing;
      await assert.rejects(engine.prepare(image, variables), isFault('image_not_found'));
    });

    check('lists an instance with its labels and an address that answers', async () => {
      const engine = await create();
      const spec = await specOf(engine, web, { revision: 7 });
      const { instance, address } = await startReady(engine, spec);
      assert.ok(instance.node);
      assert.partialDeepStrictEqual(instance, {
        ...{ id: spec.id, project: spec.project, environment: spec.environment, revision: 7 },
        ...{ state: 'running', address, exitCode: null },
      });
      const response = await fetch(`http://${address.host}:${address.port}/`);
      const { instance: name, ...rest } = (await response.json()) as Record<string, string>;
      assert.deepEqual(rest, { image: spec.image, revision: 'r7' });
      if (fixtures.namesInstances) assert.match(name!, /^production-r7-/);
      else assert.equal(name, spec.id);
    });

    check('starts one instance however often the same id is started, one after another or at once', async () => {
      const engine = await create();
      const spec = await specOf(engine, web);
      await Promise.all([start(engine, spec), start(engine, spec), start(engine, spec)]);
      const { address } = await startReady(engine, spec);
      await start(engine, spec);
      const instances = await engine.list();
      assert.equal(instances.length, 1);
      assert.deepEqual(instances[0]!.address, address);
    });

    check('a set has the instances it was told to have; one that is stopped leaves the others', async () => {
      const engine = await create();
      const { id: _, hostPort: __, ...made } = await specOf(engine, web, { drainS: 1 });
      const set = { ...made, id: ids('set') };
      const [one, two, three] = Array.from({ length: 3 }, () => ({ id: ids('instance'), hostPort: null }));
      const running = async () => new Map((await engine.list()).map(({ id, address }) => [id, address]));
      await Promise.all(engine.keep(set, [one!, two!]));
      await Promise.all(engine.keep(set, [three!]));
      for (const { id } of [one!, two!, three!]) await answers(engine, id);
      // An engine may replace one that does not serve yet.
      await until('all to be ready', async () => (await engine.list()).every(({ ready = true }) => ready), limitMs);
      const before = await running();
      assert.deepEqual(new Set(before.keys()), new Set([one!.id, two!.id, three!.id]));
      assert.equal(new Set([...before.values()].map((address) => JSON.stringify(address))).size, 3);
      await engine.stop(two!.id, 1);
      before.delete(two!.id);
      assert.deepEqual(await running(), before);
      for (const { id } of [one!, three!]) await engine.stop(id, 0);
      await engine.drop(set.id);
      await engine.drop(set.id);
      assert.deepEqual([await engine.list(), (await engine.sets?.()) ?? []], [[], []]);
    });

    check('reports the exit code of a program that ended, and does not start it again', async () => {
      const engine = await create();
      const spec = await specOf(engine, exits);
      await start(engine, spec);
      const ended = await until(
        'it to end',
        async () => {
          const instance = findIn(await engine.list(), spec.id);
          return instance?.state === 'exited' && instance;
        },
        limitMs,
      );
      assert.deepEqual([ended.exitCode, ended.address], [exits.exitCode, null]);
      const said = await engine.logs(spec.id, { tail: 100 });
      await start(engine, spec);
      if (fixtures.restartsPrograms) {
        const [still, ...others] = await engine.list();
        assert.deepEqual([still?.id, still?.state, others.length], [spec.id, 'exited', 0]);
        return;
      }
      assert.deepEqual(await engine.list(), [ended]);
      assert.deepEqual(await engine.logs(spec.id, { tail: 100 }), said);
    });

    check('says what its instances use, if it says so at all, and nothing of any that it does not run', async () => {
      const [engine, other] = [await create(), await create()];
      const spec = await specOf(engine, web);
      await startReady(engine, spec);
      const usage = await engine.usage?.([spec.id, ids('instance')]);
      if (!usage) return;
      assert.deepEqual([...usage.keys()], [spec.id]);
      const { memoryBytes, cpuMs } = usage.get(spec.id)!;
      assert.ok(memoryBytes > 0 && Number.isInteger(memoryBytes), `${memoryBytes} bytes`);
      assert.ok(cpuMs >= 0 && Number.isInteger(cpuMs), `${cpuMs} ms`);
      assert.equal((await other.usage!([spec.id])).size, 0);
    });

    check('keeps two installations apart', async () => {
      const [one, other] = [await create(), await create()];
      const spec = await specOf(one, web);
      await start(one, spec);
      assert.deepEqual(await other.list(), []);
      assert.deepEqual(await other.logs(spec.id, { tail: 10 }), []);
      await other.stop(spec.id, 0);
      assert.equal(findIn(await one.list(), spec.id)?.state, 'running');
      await start(other, spec);
      assert.equal((await one.list()).length, 1);
      assert.equal((await other.list()).length, 1);
    });

    check('removes what it stops; stopping an instance twice, or one that never existed, does nothing', async () => {
      const engine = await create();
      const spec = await specOf(engine, web);
      const { address } = await startReady(engine, spec);
      const before = performance.now();
      await engine.stop(spec.id, 30);
      assert.ok(performance.now() - before < stopMarginMs, 'a program that ends when asked to is not waited for');
      assert.deepEqual(await engine.list(), []);
      await assert.rejects(fetch(`http://${address.host}:${address.port}/`));
      await engine.stop(spec.id, 0);
      await engine.stop('never-was', 0);
      await start(engine, spec);
      await Promise.all([engine.stop(spec.id, 0), engine.stop(spec.id, 0), engine.stop(spec.id, 1)]);
      assert.deepEqual(await engine.list(), []);
    });

    check('removes an instance that has already ended', async () => {
      const engine = await create();
      const spec = await specOf(engine, exits);
      await start(engine, spec);
      await until('it to end', async () => findIn(await engine.list(), spec.id)?.state === 'exited', limitMs);
      await engine.stop(spec.id, 10);
      assert.deepEqual(await engine.list(), []);
    });

    check('kills a program that ignores the request to end, after the grace period', async () => {
      const engine = await create();
      const spec = await specOf(engine, stubborn, { drainS: graceMs / 1000 });
      const { address } = await startReady(engine, spec);
      await stubborn.occupy?.(address);
      const before = performance.now();
      await engine.stop(spec.id, graceMs / 1000);
      const tookMs = performance.now() - before;
      assert.ok(tookMs > graceMs - 100 && tookMs < graceMs + stopMarginMs, `took ${tookMs} ms`);
      assert.deepEqual(await engine.list(), []);
    });

    check('returns the latest log lines, and those after a given time', async () => {
      const engine = await create();
      const spec = await specOf(engine, chatty);
      const before = Date.now();
      const { address } = await startReady(engine, spec);
      await chatty.provoke?.(address);
      const all = await until(
        'all lines',
        async () => {
          const said = await engine.logs(spec.id, { tail: 1000 });
          return said.length >= chatty.lines && said;
        },
        limitMs,
      );
      const streams = fixtures.mixesStreams ? ['stdout'] : ['stdout', 'stderr'];
      assert.deepEqual(new Set(all.map(({ stream }) => stream)), new Set(streams));
      for (const [index, { at }] of all.entries()) {
        const earliest: number = (all[index - 1]?.at ?? 0) - (fixtures.mixesStreams ? disorderMs : 0);
        assert.ok(at >= before - 1 && at <= Date.now() && at >= earliest, 'oldest first, told when');
      }
      assert.deepEqual(await engine.logs(spec.id, { tail: 2 }), all.slice(-2));
      assert.deepEqual(await engine.logs(spec.id, { tail: 0 }), []);
      const sinceMs = all[0]!.at;
      assert.deepEqual(
        await engine.logs(spec.id, { tail: 1000, sinceMs }),
        all.filter(({ at }) => at > sinceMs),
      );
      assert.deepEqual(await engine.logs(spec.id, { tail: 1000, sinceMs: all.at(-1)!.at }), []);
      assert.deepEqual(await engine.logs('never-was', { tail: 10 }), []);
      const some = await engine.logs(spec.id, { tail: 1000, maxBytes: 30 });
      assert.ok(some.length > 0 && some.length < all.length, `${some.length} of ${all.length} lines fit`);
      assert.deepEqual(some, all.slice(-some.length));
    });

    check('follows what an instance prints, from any position on, each line once', async () => {
      const engine = await create();
      const spec = await specOf(engine, chatty);
      const { address } = await startReady(engine, spec);
      await chatty.provoke?.(address);
      const stopped = new AbortController();
      const all = await collect(engine.follow!(spec.id, null, stopped.signal), chatty.lines);
      const said = (await engine.logs(spec.id, { tail: 1000 })).map(({ text }) => text);
      assert.deepEqual(textsOf(all), said);
      const kinds = new Set(
        all
          .toString()
          .split('\n')
          .map((line) => line[0]),
      );
      assert.deepEqual(kinds, new Set(fixtures.mixesStreams ? ['o', undefined] : ['o', 'e', undefined]));
      for (const count of [1, 3, chatty.lines - 1]) {
        const head = all.subarray(0, endOfLine(all, count));
        const rest = engine.follow!(spec.id, positionBehind(null, head), stopped.signal);
        assert.deepEqual(
          textsOf(await collect(rest, chatty.lines - count)),
          said.slice(count),
          `behind ${count} lines`,
        );
      }
      stopped.abort();
    });

    check('the log of an instance ends with it, and can be read until it is removed', async () => {
      const engine = await create();
      const spec = await specOf(engine, chatty);
      const { address } = await startReady(engine, spec);
      await chatty.provoke?.(address);
      const { signal } = new AbortController();
      const whole = collect(engine.follow!(spec.id, null, signal));
      let last: Buffer | null = null;
      await engine.stop(spec.id, 5, async () => {
        last = await collect(engine.follow!(spec.id, null, signal));
      });
      assert.ok(textsOf(last!).length >= chatty.lines, `${textsOf(last!).length} lines`);
      assert.deepEqual(textsOf(await whole), textsOf(last!));
      assert.deepEqual(await collect(engine.follow!(spec.id, null, signal)), Buffer.alloc(0), 'it is gone');
    });

    if (fixtures.outlivesProcess) {
      check('another process finds the instances again', async () => {
        const installation = ids('installation');
        const engine = await create(installation);
        const spec = await specOf(engine, web);
        await start(engine, spec);
        const before = await engine.list();
        await engine.close();
        made.splice(0);
        const another = await create(installation);
        assert.deepEqual(await another.list(), before);
        await start(another, spec);
        assert.deepEqual(await another.list(), before);
      });
    }

    if (outage) {
      check('reports that it is unavailable, and works once it is back', async () => {
        const engine = await create();
        const spec = await specOf(engine, web);
        await start(engine, spec);
        await outage.begin();
        try {
          await assertAway(engine, web, spec, fixtures.preparesWithout ? ['prepare'] : []);
        } finally {
          await outage.end();
        }
        await engine.probe();
        assert.equal((await engine.list()).length, 1, 'nothing is lost');
        await engine.stop(spec.id, 1);
        await startReady(engine, spec);
      });
    }
  });
}

// Unused images: what the engine pulled itself goes when nothing needs it, and nothing else ever does.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createDockerEngine, type DockerEngine } from '../../src/engines/docker/docker.ts';
import { dockerMissing, startDocker, startRegistry, type TestDocker, type TestRegistry } from '../helpers/docker.ts';
import { pushImage } from '../helpers/images.ts';
import { specOf } from '../helpers/instances.ts';

const minuteMs = 60_000;

describe('images of Docker', { skip: dockerMissing }, () => {
  let docker: TestDocker;
  let registry: TestRegistry;
  let engine: DockerEngine;
  let nowMs = Date.now();
  const open = () =>
    createDockerEngine({ address: docker.socket, installation: 'Images.1', clock: { now: () => nowMs } });
  const push = (tag: string) => pushImage(docker, registry, 'web', { tag });
  const isThere = (image: string) =>
    docker.client
      .getImage(image)
      .inspect()
      .then(
        () => true,
        () => false,
      );
  const pull = async (image: string) => (await engine.prepare(image, {})).digest;
  const remove = (kept: string[] = [], idleMs = 0) => engine.removeImages!(new Set(kept), idleMs, false);
  /** A pull is taken for one that is needed for a moment. */
  const later = (ms = 2 * minuteMs) => {
    nowMs += ms;
  };

  before(async () => {
    [docker, registry] = await Promise.all([startDocker(), startRegistry()]);
    engine = await open();
  });
  after(async () => {
    await engine?.close();
    await docker?.stop();
    await registry?.stop();
  });

  test('those that it pulled, that no revision refers to and no container uses', async () => {
    const [there, unused, used, kept, named] = await Promise.all(
      ['there', 'unused', 'used', 'kept', 'named'].map((tag) => push(tag)),
    );
    await docker.client.pull(there!);
    await pull(there!);
    await pull(unused!);
    const keptDigest = await pull(kept!);
    await pull(named!);
    await docker.client.getImage(named!).tag('mine', 'v1');
    const spec = await specOf(engine, { image: used!, variables: {} });
    await engine.start(spec);

    assert.equal((await remove([keptDigest])).images, 0, 'what was only just pulled stays');
    later();
    const { images, bytes } = await remove([keptDigest]);
    assert.equal(images, 1);
    assert.ok(bytes > 0);
    assert.deepEqual(await Promise.all([there, unused, used, kept, named].map((image) => isThere(image!))), [
      true,
      false,
      true,
      true,
      true,
    ]);

    await engine.stop(spec.id, 0);
    assert.equal((await remove([], 60 * minuteMs)).images, 0, 'they have not been unused for long');
    later(61 * minuteMs);
    assert.equal((await remove([], 60 * minuteMs)).images, 2);
    assert.deepEqual(await Promise.all([there, used, kept, named].map((image) => isThere(image!))), [
      true,
      false,
      false,
      true,
    ]);
  });

  test('those of a process that is gone, whose tag points elsewhere by now, and one that was pulled again', async () => {
    const image = await push('moves');
    const first = await pull(image);
    await pushImage(docker, registry, 'chatty', { image: 'web', tag: 'moves' });
    const spec = await specOf(engine, { image, variables: {} });
    const second = spec.digest;
    assert.notEqual(first, second);
    await engine.close();
    engine = await open();
    assert.equal((await remove([second])).images, 1);
    assert.equal((await remove()).images, 1);
    await engine.start(spec);
    await engine.stop(spec.id, 0);
    later();
    assert.equal((await remove()).images, 1, 'what a start pulled again');
    assert.equal((await engine.countImages!()).images, 1, 'the one that has another name, too');
  });
});

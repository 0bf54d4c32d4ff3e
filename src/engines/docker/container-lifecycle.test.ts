import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DiskLimit } from './container-lifecycle.ts';
import { type ContainerConfig, DockerError } from './docker-api.ts';

/** What Docker is asked for, one after the other; `refusal` is its answer to a limit. */
async function askedBy(limit: DiskLimit, times: number, refusal: string | null): Promise<ContainerConfig[]> {
  const asked: ContainerConfig[] = [];
  for (let count = 0; count < times; count++) {
    await limit.create({ Image: 'shop', HostConfig: { Memory: 1 } }, async (options) => {
      asked.push(options);
      if (options.HostConfig?.StorageOpt && refusal !== null) throw new DockerError(500, refusal);
    });
  }
  return asked;
}

const limited = { Image: 'shop', HostConfig: { Memory: 1, StorageOpt: { size: '50M' } } };
const unlimited = { Image: 'shop', HostConfig: { Memory: 1 } };

test('a storage that can limit what a container writes is asked to', async () => {
  assert.deepEqual(await askedBy(new DiskLimit(50), 2, null), [limited, limited]);
});

test('one that cannot is asked once, and containers have no limit', async () => {
  const refusal = "--storage-opt is supported only for overlay over xfs with 'pquota' mount option";
  assert.deepEqual(await askedBy(new DiskLimit(50), 2, refusal), [limited, unlimited, unlimited]);
});

test('any other refusal is one of the container', async () => {
  await assert.rejects(askedBy(new DiskLimit(50), 1, 'no such image'), /no such image/);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import type { Db } from '../../db/database.ts';
import { type Engine, EngineError } from '../../engines/engine.ts';
import { createSeal } from '../../lib/seal.ts';
import type { RegionState } from '../../regions/regions.ts';
import type { DeploymentRow, RevisionRow } from '../deployment-queries.ts';
import { ImagePulls, pullRetryMs } from './image-pulls.ts';

const deployment = {
  ...{ id: 'dpl_1', project_id: 'prj_1', environment: 'production' },
  ...{ image: 'registry.example/shop:v1', digest: null },
} as DeploymentRow;
const revision = { variables_sealed: null } as RevisionRow;

/** Checks every 300 ms of a manual clock, as reconcile passes do; `prepare` answers the pulls. */
function checking(prepare: (pull: number) => Promise<{ digest: string }>) {
  let nowMs = 1_000_000;
  let pulls = 0;
  const engine = { prepare: () => prepare(++pulls) } as Partial<Engine> as Engine;
  const region: RegionState = { name: 'local', engine, available: true, lastCheckedAt: null };
  const parts = {
    // There are no variables to be read.
    db: {} as Db,
    logins: { find: async () => null },
    seal: createSeal(Buffer.alloc(32)),
    log: pino({ level: 'silent' }),
    clock: { now: () => nowMs },
    random: () => 0.5,
  };
  const images = new ImagePulls(parts, () => {});
  return {
    pulls: () => pulls,
    async checkFor(durationMs: number) {
      const until = nowMs + durationMs;
      for (; nowMs < until; nowMs += 300) {
        images.check(deployment, revision, region);
        await new Promise((resolve) => setImmediate(resolve));
      }
      return images.check(deployment, revision, region);
    },
  };
}

const failing = () => Promise.reject(new EngineError('registry_failing', 'received unexpected HTTP status: 503'));
const refused = () =>
  Promise.reject(new EngineError('registry_unreachable', 'dial tcp 10.0.0.9:443: connect: connection refused'));

test('a registry that answers with errors is asked ten times in ten minutes, and what it said is known at once', async () => {
  const { checkFor, pulls } = checking(failing);
  const trouble = {
    code: 'registry_unreachable',
    message: 'The registry does not answer as it should: received unexpected HTTP status: 503.',
  };
  assert.deepEqual(await checkFor(300), { trouble });
  assert.equal(pulls(), 1);
  assert.deepEqual(await checkFor(600_000), { trouble });
  assert.equal(pulls(), 10);
});

test('a registry that cannot be reached is asked once more, within five seconds, and then not again', async () => {
  const { checkFor, pulls } = checking(refused);
  const message = 'The registry cannot be reached: dial tcp 10.0.0.9:443: connect: connection refused.';
  assert.deepEqual(await checkFor(300), { trouble: { code: 'registry_unreachable', message } });
  const known = (await checkFor(5_000)) as { code: string; message: string };
  assert.equal(known.code, 'registry_unreachable');
  assert.ok(known.message.startsWith(`${message} Check the name of the registry`), known.message);
  await checkFor(600_000);
  assert.equal(pulls(), 2);
});

test('one that could not be reached for a moment is no failure', async () => {
  const { checkFor } = checking((pull) => (pull % 2 === 1 ? refused() : failing()));
  assert.ok('trouble' in (await checkFor(600_000))!);
});

test('once the registry answers, the image is there, and no further pull follows', async () => {
  const { checkFor, pulls } = checking((pull) => (pull < 4 ? failing() : Promise.resolve({ digest: 'sha256:1' })));
  assert.deepEqual(await checkFor(30_000), { digest: 'sha256:1' });
  await checkFor(600_000);
  assert.equal(pulls(), 4);
});

test('an image that is not there, or not for us, is not asked for again', async () => {
  for (const fault of ['image_not_found', 'image_denied'] as const) {
    const { checkFor, pulls } = checking(() => Promise.reject(new EngineError(fault, 'no')));
    assert.deepEqual(await checkFor(600_000), { code: fault, message: 'no' });
    assert.equal(pulls(), 1);
  }
});

test('a registry that refuses more pulls, and an engine whose disk is full, are told apart', async () => {
  const told = async (fault: 'registry_rate_limited' | 'unavailable', message: string) =>
    checking(() => Promise.reject(new EngineError(fault, message))).checkFor(300);
  assert.deepEqual(await told('registry_rate_limited', 'toomanyrequests'), {
    trouble: { code: 'registry_unreachable', message: 'The registry refuses more pulls for now: toomanyrequests.' },
  });
  assert.deepEqual(await told('unavailable', 'no space left on device.'), {
    trouble: { code: 'deadline_exceeded', message: 'The image could not be pulled: no space left on device.' },
  });
});

test('the wait doubles up to two minutes, and is spread by a fifth', () => {
  const waits = Array.from({ length: 9 }, (_, failures) => pullRetryMs(failures + 1, 0.5));
  assert.deepEqual(waits, [2000, 4000, 8000, 16_000, 32_000, 64_000, 120_000, 120_000, 120_000]);
  assert.deepEqual([pullRetryMs(1, 0), pullRetryMs(1, 1)], [1600, 2400]);
});

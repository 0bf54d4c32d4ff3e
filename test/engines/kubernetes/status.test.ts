// What pods and ReplicaSets say, read from answers of a real API server (1.35), kept as they were in every state.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import type { Pod, ReplicaSet } from '../../../src/engines/kubernetes/kube-objects.ts';
import { instancesOf } from '../../../src/engines/kubernetes/members.ts';
import { pullMessage, readPod } from '../../../src/engines/kubernetes/pod-status.ts';

const fixture = <T = Pod>(name: string): T =>
  JSON.parse(readFileSync(new URL(`fixtures/${name}.json`, import.meta.url), 'utf8'));

const rows: [name: string, state: string, code: string | null, words: RegExp | null][] = [
  ['ready', 'running', null, null],
  ['creating', 'created', null, null],
  ['ended-once', 'exited', 'crashed', /exit code 3/],
  ['crash-loop', 'exited', 'crashed', /exit code 3/],
  ['out-of-memory', 'exited', 'out_of_memory', /\(16Mi\)\. Raise resources\.memory_mb/],
  ['start-error', 'exited', 'start_failed', /no such file or directory.*Check the command/],
  ['create-error', 'created', 'start_failed', /cannot be created.*etc\/passwd.*Check the command, the user/],
  ['config-error', 'created', 'start_failed', /secret .* not found\. .*deploy again/],
  ['invalid-image', 'created', 'image_not_found', /is no name of an image.*Correct it/],
  ['pull-error', 'created', 'image_not_found', /^A node found no .*\. Check its name and tag/],
  ['pull-back-off', 'created', 'image_not_found', /^A node found no .*\. Check its name and tag/],
  ['pull-denied', 'created', 'image_denied', /status 401\. Add a login/],
  ['registry-away', 'created', 'registry_unreachable', /connection refused\. Check that the nodes reach/],
  ['unschedulable', 'created', 'unschedulable', /Insufficient memory.*Add nodes/],
];

for (const [name, state, code, words] of rows) {
  test(`${name}: ${state}${code ? `, ${code}` : ''}`, () => {
    const reading = readPod(fixture(name));
    assert.equal(reading.state, state);
    assert.equal(reading.failure?.code ?? null, code);
    if (words) assert.match(reading.failure!.message, words);
    assert.equal(reading.isLeaving || reading.isEvicted, false);
    assert.equal(reading.ready, name === 'ready');
    assert.equal(reading.address !== null, name === 'ready');
  });
}

test('a ready pod has an address and a node', () => {
  const { address, node, restarts } = readPod(fixture('ready'));
  assert.match(address!.host, /^10\.88\.\d+\.\d+$/);
  assert.deepEqual([address!.port, node, restarts], [8080, 'node1', 0]);
});

test('the first message of a pull that failed counts where the kubelet says only that it backs off', () => {
  const first = pullMessage(fixture('pull-denied'));
  assert.match(first!, /401 Unauthorized/);
  assert.equal(pullMessage(fixture('pull-back-off')), null);
  const silent = fixture('pull-back-off');
  silent.status!.containerStatuses![0]!.state!.waiting!.message = 'Back-off pulling image "registry.example/web"';
  assert.equal(readPod(silent).failure!.code, 'registry_unreachable', 'nothing better is known');
  assert.equal(readPod(silent, first).failure!.code, 'image_denied');
});

test('what is a reason of its own counts before what the message says', () => {
  const away = fixture('pull-error');
  away.status!.containerStatuses![0]!.state!.waiting!.reason = 'RegistryUnavailable';
  assert.equal(readPod(away).failure!.code, 'registry_unreachable');
});

test('what the kubelet started again is as ended until it is up once more', () => {
  const again = fixture('crash-loop');
  const [status] = again.status!.containerStatuses!;
  status!.state = { running: { startedAt: '2026-11-15T22:00:00Z' } };
  status!.started = false;
  assert.deepEqual([readPod(again).state, readPod(again).hasNextRun], ['exited', true]);
  status!.started = true;
  assert.deepEqual([readPod(again).state, readPod(again).ready], ['running', false], 'unhealthy, which is no end');
  status!.ready = true;
  const reading = readPod(again);
  assert.deepEqual([reading.state, reading.failure, reading.hasNextRun], ['running', null, false]);
  assert.ok(reading.restarts > 0);
});

describe('an instance of a set', () => {
  const replicaSet = fixture<ReplicaSet>('quota');
  /** Of a set of one. */
  const instanceOf = (set: ReplicaSet | undefined, pods: Pod[]) => instancesOf(set, pods)[0]?.instance ?? null;

  test('a quota that is used up: quota_exceeded', () => {
    const instance = instanceOf(replicaSet, [])!;
    assert.deepEqual([instance.state, instance.failure!.code], ['created', 'quota_exceeded']);
    assert.match(instance.failure!.message, /exceeded quota.*Raise its ResourceQuota or LimitRange/);
    assert.deepEqual([instance.project, instance.environment, instance.revision], ['prj_quota', 'production', 1]);
  });

  test('a pod that is evicted or lost with its node blames nobody: the set has another', () => {
    const evicted = fixture('ready');
    Object.assign(evicted.status!, {
      phase: 'Failed',
      reason: 'Evicted',
      message: 'The node was low on resource: memory',
    });
    const plain = { ...replicaSet, status: {} };
    assert.deepEqual(
      [instanceOf(plain, [evicted])!.state, instanceOf(plain, [evicted])!.failure],
      ['created', undefined],
    );
    const next = fixture('ready');
    next.metadata.name = 'next';
    next.metadata.annotations = { 'sluice.instance': instanceOf(plain, [])!.id };
    assert.equal(instanceOf(plain, [evicted, next])!.state, 'running');
    const leaving = fixture('ready');
    leaving.metadata.deletionTimestamp = '2026-11-15T22:00:00Z';
    assert.equal(instanceOf(plain, [leaving])!.state, 'created');
    assert.equal(instanceOf(plain, [leaving])!.address, null, 'visitors are not sent to it any more');
  });

  test('what is being removed is no instance', () => {
    const leaving = fixture('ready');
    leaving.metadata.deletionTimestamp = '2026-11-15T22:00:00Z';
    assert.equal(instanceOf(undefined, [leaving]), null);
    const removed = { ...replicaSet, metadata: { ...replicaSet.metadata, deletionTimestamp: '2026-11-15T22:00:00Z' } };
    assert.equal(instanceOf(removed, []), null);
    assert.equal(instanceOf(undefined, [fixture('ready')]), null, 'they are removed with their set');
  });
});

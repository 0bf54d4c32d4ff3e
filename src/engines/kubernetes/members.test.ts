import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from './kube-objects.ts';
import { membersOf, membersText, podsOf, podsToGive } from './members.ts';
import { annotation, label } from './object-names.ts';

/** `age`: the higher, the later it was created. */
function pod(name: string, age: number, instance?: string, more: Pod['metadata'] | object = {}): Pod {
  const annotations = instance === undefined ? {} : { [annotation.instance]: instance };
  const creationTimestamp = `2026-11-16T10:00:0${age}Z`;
  return { metadata: { name, creationTimestamp, annotations, ...more }, status: { phase: 'Running' } };
}

const named = (pods: Map<string, Pod>) =>
  Object.fromEntries([...pods].map(([member, { metadata }]) => [member, metadata.name]));

const leaving = { deletionTimestamp: 'now' };

for (const [what, members, pods, given, toGive] of [
  ['pods are given out by age', ['a', 'b'], [pod('y', 2), pod('x', 1)], {}, { a: 'x', b: 'y' }],
  ['what was given stays', ['a', 'b'], [pod('x', 1, 'b'), pod('y', 2)], { b: 'x' }, { a: 'y' }],
  ['one that leaves is replaced by the next', ['a'], [pod('x', 1, 'a', leaving), pod('y', 2)], {}, { a: 'y' }],
  ['an instance may have to wait', ['a', 'b'], [pod('x', 1, 'a')], { a: 'x' }, {}],
  ['a pod of an instance that is gone is free', ['b'], [pod('x', 1, 'a')], {}, { b: 'x' }],
  ['of two with the same, the older counts', ['a', 'b'], [pod('y', 2, 'a'), pod('x', 1, 'a')], { a: 'x' }, { b: 'y' }],
  ['one too many is nobody', ['a'], [pod('x', 1, 'a'), pod('y', 2)], { a: 'x' }, {}],
] as const satisfies [string, string[], Pod[], object, object][]) {
  test(what, () => {
    assert.deepEqual(named(podsOf(members, pods)), given);
    assert.deepEqual(named(podsToGive(members, pods)), toGive);
  });
}

test('members are kept in an annotation; a set without one is an instance by itself', () => {
  const set = (annotations?: Record<string, string>) => ({
    metadata: { name: 'rs', labels: { [label.set]: 'ins_1' }, ...(annotations && { annotations }) },
  });
  const kept = (members: string[]) => membersOf(set({ [annotation.instances]: membersText(members) }));
  assert.deepEqual(kept(['a', 'b']), ['a', 'b']);
  assert.deepEqual(kept([]), []);
  assert.deepEqual(membersOf(set()), ['ins_1']);
});

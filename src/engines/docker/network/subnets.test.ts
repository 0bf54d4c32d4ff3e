import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRange } from '../../../lib/address.ts';
import { freeSubnets, routedNetworks } from './subnets.ts';

const pool = { base: parseRange('10.213.0.0/24')!, size: 26 };

test('every subnet of the range once, from a place of the project’s own, without those that are taken', () => {
  const all = [...freeSubnets(pool, 'prj_1', [])];
  assert.deepEqual(all.toSorted(), ['10.213.0.0/26', '10.213.0.128/26', '10.213.0.192/26', '10.213.0.64/26']);
  const taken = [parseRange('10.213.0.64/28')!, parseRange('192.168.0.0/16')!];
  assert.deepEqual([...freeSubnets(pool, 'prj_1', taken)].toSorted(), [
    '10.213.0.0/26',
    '10.213.0.128/26',
    '10.213.0.192/26',
  ]);
  assert.deepEqual([...freeSubnets(pool, 'prj_1', [parseRange('10.0.0.0/8')!])], []);
  const starts = new Set(Array.from({ length: 20 }, (_, n) => freeSubnets(pool, `prj_${n}`, []).next().value));
  assert.ok(starts.size > 1);
  const turns = [0, 1, 2, 3].map((turn) => freeSubnets(pool, 'prj_1', [], turn).next().value!);
  assert.deepEqual(turns.toSorted(), all.toSorted(), 'each host of a region begins at another');
});

test('the networks of this machine, without the default route', () => {
  const text = [
    'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT',
    'eth0\t00000000\t0102000A\t0003\t0\t0\t0\t00000000\t0\t0\t0',
    'br-1\t8000D50A\t00000000\t0001\t0\t0\t0\t80FFFFFF\t0\t0\t0',
    '',
  ].join('\n');
  assert.deepEqual(routedNetworks(text), [parseRange('10.213.0.128/25')]);
  assert.deepEqual(routedNetworks(''), []);
});

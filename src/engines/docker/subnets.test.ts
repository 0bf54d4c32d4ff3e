import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRange, rangeText } from '../../lib/address.ts';
import { freeSubnets, isShared, parseRoutes, type SubnetPool } from './subnets.ts';

const pool: SubnetPool = { base: parseRange('10.213.0.0/24')!, size: 26 };
const free = (...args: Parameters<typeof freeSubnets>) => [...freeSubnets(...args)].map(rangeText);

test('every subnet of the range once, from a place of the project’s own, without those that are taken', () => {
  const all = free(pool, 'prj_1', []);
  assert.deepEqual(all.toSorted(), ['10.213.0.0/26', '10.213.0.128/26', '10.213.0.192/26', '10.213.0.64/26']);
  const taken = [parseRange('10.213.0.64/28')!, parseRange('192.168.0.0/16')!];
  assert.deepEqual(free(pool, 'prj_1', taken).toSorted(), ['10.213.0.0/26', '10.213.0.128/26', '10.213.0.192/26']);
  assert.deepEqual(free(pool, 'prj_1', [parseRange('10.0.0.0/8')!]), []);
  const starts = new Set(Array.from({ length: 20 }, (_, n) => free(pool, `prj_${n}`, [])[0]));
  assert.ok(starts.size > 1);
  const turns = [0, 1, 2, 3].map((turn) => free(pool, 'prj_1', [], turn)[0]!);
  assert.deepEqual(turns.toSorted(), all.toSorted(), 'each host of a region begins at another');
});

test('the networks of this machine, without the default route', () => {
  const text = [
    'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT',
    'eth0\t00000000\t0102000A\t0003\t0\t0\t0\t00000000\t0\t0\t0',
    'br-1\t8000D50A\t00000000\t0001\t0\t0\t0\t80FFFFFF\t0\t0\t0',
    '',
  ].join('\n');
  assert.deepEqual(parseRoutes(text), [{ network: parseRange('10.213.0.128/25'), device: 'br-1' }]);
  assert.deepEqual(parseRoutes(''), []);
});

test('a subnet is shared where two devices have addresses of it', () => {
  const routes = [
    { network: parseRange('10.213.0.0/26')!, device: 'br-1' },
    { network: parseRange('10.213.0.32/27')!, device: 'br-1' },
    { network: parseRange('10.213.0.128/25')!, device: 'br-1' },
    { network: parseRange('10.213.0.192/26')!, device: 'br-2' },
  ];
  const shared = free(pool, 'prj_1', []).filter((subnet) => isShared(parseRange(subnet)!, routes));
  assert.deepEqual(shared, ['10.213.0.192/26']);
});

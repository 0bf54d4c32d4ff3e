import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrafficCounter } from '../measurements.ts';
import { defaultLimits } from './limits.ts';
import { RouteTable } from './route-table.ts';

const routes = (environment: string, ...hosts: string[]) => ({
  project: 'prj_1',
  environment,
  hosts: hosts.map((name) => ({ name, secure: false })),
  shares: [{ revision: 1, percent: 100, targets: [{ instance: `ins_${environment}`, host: '127.0.0.1', port: 1 }] }],
});

test('a host that was another environment’s for a while leads back to the one that has it again', () => {
  const table = new RouteTable(defaultLimits, new TrafficCounter({ now: () => 0 }));
  const leadsTo = (host: string) => table.find(host)?.stable.instances[0]?.id;
  for (const others of [[], ['b.example']]) {
    table.replace(routes('a', 'shop.example'));
    const first = table.find('shop.example');
    table.replace(routes('b', 'shop.example', 'b.example'));
    assert.equal(leadsTo('shop.example'), 'ins_b');
    // That the first environment had lost it meanwhile was never sent: only the last state is.
    table.replace(routes('b', ...others));
    table.replace(routes('a', 'shop.example'));
    assert.equal(leadsTo('shop.example'), 'ins_a');
    assert.equal(table.find('shop.example'), first, 'with what it had');
  }
});

// The checks of the chaos soak can fail: each on what it is there to find.
import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { describe, test } from 'node:test';
import * as checks from './checks.ts';
import type { Facts, FailedVisit, FaultRecord } from './records.ts';

const bodyOf = (id: string) => JSON.stringify({ data: { id } });
const event = (sequence: number, type: string, of = 'dpl_1') => ({
  id: `evt_${sequence}`,
  type,
  project_id: 'prj_1',
  sequence,
  body: bodyOf(of),
});
const arrival = (id: string, body: string, secret = 'secret') => ({
  id,
  sha256: createHash('sha256').update(body).digest('hex'),
  signature: createHmac('sha256', secret).update(body).digest('hex'),
});

const events = [event(1, 'deployment.created'), event(2, 'deployment.succeeded')];
const arrivals = events.map(({ id, body }) => arrival(id, body));
const good: Facts = {
  projects: [{ id: 'prj_1', name: 'Project 1', next_sequence: 3 }],
  deployments: [{ id: 'dpl_1', note: 'shop 1', state: 'succeeded', failure_code: null, finished_at: 1 }],
  events,
  unfinishedDeliveries: 0,
  receivers: [{ secret: 'secret', isStrict: true, arrivals }],
  instanceRows: [{ id: 'i1', state: 'healthy' }],
  containers: [{ id: 'i1', state: 'running' }],
  shares: [{ environment: 'prj_1/production', percent: 100 }],
};

describe('what is there at the end', () => {
  const breaches = (facts: Facts) => [
    ...checks.lost([{ what: 'deployment', id: 'dpl_1' }], facts),
    ...checks.doubled(['Project 1', 'shop 1'], facts),
    ...checks.withoutOneEnd(facts),
    ...checks.withGaps(facts),
    ...checks.notDelivered(facts),
    ...checks.orphans(facts),
    ...checks.wrongShares(facts),
  ];
  const receiving = (...all: Facts['receivers'][number]['arrivals']) => ({
    receivers: [{ secret: 'secret', isStrict: true, arrivals: all }],
  });
  const [first, second] = arrivals as [(typeof arrivals)[0], (typeof arrivals)[0]];
  const deployment = good.deployments[0]!;

  test('everything as it should be', () => assert.deepEqual(breaches(good), []));
  test('an event may arrive twice', () =>
    assert.deepEqual(breaches({ ...good, ...receiving(first, first, second) }), []));

  const broken: Record<string, [Partial<Facts>, RegExp]> = {
    'an acknowledged deployment is gone': [{ deployments: [] }, /acknowledged and is gone/],
    'a POST was carried out twice': [{ projects: [...good.projects, ...good.projects] }, /more than once/],
    'a deployment has not ended': [{ deployments: [{ ...deployment, finished_at: null }] }, /has not ended/],
    'a second end': [{ events: [...events, event(3, 'deployment.failed')] }, /reported as ended 2 times/],
    'no end': [{ events: events.slice(0, 1) }, /reported as ended 0 times/],
    'a gap': [{ events: [events[0]!, { ...events[1]!, sequence: 3 }] }, /the events of prj_1 are 1 3/],
    'the last event is gone': [{ projects: [{ ...good.projects[0]!, next_sequence: 4 }] }, /the next one 4/],
    'not arrived': [receiving(first), /did not arrive/],
    'other bytes': [receiving(first, arrival('evt_2', 'other')), /with other bytes/],
    'a wrong signature': [receiving(first, arrival('evt_2', second && bodyOf('dpl_1'), 'no')), /wrong signature/],
    'out of order': [receiving(second, first), /evt_1 overtook/],
    'a delivery that has not succeeded': [{ unfinishedDeliveries: 1 }, /1 deliveries/],
    'a container without a row': [{ instanceRows: [] }, /container i1 \(running\) has no row/],
    'a row without a container': [{ containers: [] }, /row i1 \(healthy\) has no container/],
    'shares of 90 %': [{ shares: [{ environment: 'prj_1/production', percent: 90 }] }, /serves 90 %/],
  };
  for (const [name, [change, expected]] of Object.entries(broken)) {
    test(name, () => assert.match(breaches({ ...good, ...change }).join('\n'), expected));
  }

  test('aborted, and yet succeeded', () => {
    assert.equal(checks.abortedInVain([{ what: 'abort', id: 'dpl_1' }], good).length, 1);
  });
});

describe('a failed visit', () => {
  const visit: FailedVisit = {
    service: 'a',
    plane: 'builtin',
    site: 'shop',
    worker: 7,
    fromMs: 10_000,
    toMs: 10_500,
    reason: 'ECONNRESET',
  };
  const fault = (kind: FaultRecord['kind'], more: Partial<FaultRecord> = {}): FaultRecord[] => [
    { kind, service: 'a', pid: 7, takesRouter: false, fromMs: 10_200, toMs: 10_200, ...more },
  ];

  test('in a worker that was killed or stopped meanwhile', () => {
    assert.equal(checks.excuseOf(visit, fault('kill worker')), 'worker killed');
    assert.equal(checks.excuseOf(visit, fault('stop worker', { fromMs: 0, toMs: 10_100 })), 'worker stopped');
    assert.equal(checks.excuseOf({ ...visit, worker: null }, fault('kill worker')), 'worker killed');
    assert.equal(checks.excuseOf(visit, fault('kill worker', { fromMs: 5000, toMs: 5000 })), 'worker killed');
  });
  test('but not in another worker, at another service, or at another time', () => {
    assert.equal(checks.excuseOf(visit, fault('kill worker', { pid: 8 })), null);
    assert.equal(checks.excuseOf({ ...visit, worker: null }, fault('kill worker', { service: 'b' })), null);
    assert.equal(checks.excuseOf({ ...visit, worker: null }, fault('kill worker', { fromMs: 5000, toMs: 5000 })), null);
    assert.equal(checks.excuseOf(visit, fault('kill worker', { fromMs: 10_600, toMs: 10_600 })), null);
  });
  test('while no process of the service is there', () => {
    const away = { takesRouter: true, fromMs: 5000, toMs: Number.POSITIVE_INFINITY };
    assert.equal(checks.excuseOf(visit, fault('kill service', away)), 'service down');
    assert.equal(checks.excuseOf(visit, fault('kill service', { ...away, service: 'b' })), null);
    assert.equal(checks.excuseOf(visit, fault('kill service', { ...away, takesRouter: false })), null, 'HAProxy stays');
  });
  test('at instances that the engine ended: an answer of the router or the rest of one, not a broken connection', () => {
    assert.equal(checks.excuseOf({ ...visit, reason: '502 ' }, fault('kill docker')), 'instances ended');
    assert.equal(checks.excuseOf({ ...visit, reason: 'ECONNRESET aborted' }, fault('kill docker')), 'instances ended');
    assert.equal(checks.excuseOf({ ...visit, reason: 'ECONNRESET socket hang up' }, fault('kill docker')), null);
    assert.equal(checks.excuseOf({ ...visit, plane: 'haproxy' }, fault('kill docker')), 'instances ended');
    assert.equal(checks.excuseOf({ ...visit, reason: '502 ' }, fault('stop docker')), null);
  });
  test('never because of a control process, a supervisor, a receiver or the database', () => {
    for (const part of ['control', 'supervisor', 'receiver'] as const) {
      assert.equal(checks.excuseOf(visit, fault(`kill ${part}`)), null, part);
      assert.equal(checks.excuseOf(visit, fault(`stop ${part}`)), null, part);
    }
    assert.equal(checks.excuseOf({ ...visit, reason: '503 ' }, fault('kill postgres')), null);
  });
});

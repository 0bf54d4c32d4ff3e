// Each invariant can fail: it accepts what is right and names what is wrong.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import * as invariants from '../../simulation/commit-invariants.ts';
import { expected, readCoverage } from '../../simulation/coverage.ts';
import type { SimulatedInstance } from '../../simulation/engine.ts';
import { type Commit, type Facts, noFacts } from '../../simulation/facts.ts';
import { findLostVersion, findLostWrite, findWrongWrite, type Write } from '../../simulation/ledger.ts';
import {
  arrivedWithEqualBytes,
  findCountedTwice,
  findLateRollout,
  findOldOrphan,
  findReusedPort,
  findRoutedUnfit,
  findUnrest,
  findUnsentSuccess,
  findUntoldSick,
  isStoppedTooEarly,
  overtakes,
  type PortHistory,
} from '../../simulation/moment-invariants.ts';
import { noteWritten, watchSignals } from '../../simulation/signal-watch.ts';
import { Visits } from '../../simulation/visits.ts';
import { openDatabase } from '../../src/db/open-database.ts';
import { publish } from '../../src/signals/signals.ts';

type Rows = { [Table in keyof Facts]?: readonly object[] };

const at = { project_id: 'p', environment: 'e' };
const facts = (rows: Rows): Facts => ({ ...noFacts, ...rows }) as Facts;
const commit = (before: Rows, after: Rows): Commit => ({
  before: facts(before),
  after: facts(after),
  by: 'run_1',
  leased: null,
  leastReplicas: new Map([['p e', 2]]),
});
const deployment = (more: object) => ({ ...at, id: 'd', state: 'starting', finished_at: null, version: 2, ...more });
const revision = (number: number, percent: number, state = 'active') => ({
  ...at,
  number,
  state,
  traffic_percent: percent,
  image: 'sim/ok:1',
});
const instance = (id: string, number: number, state: string) => ({ ...at, id, revision: number, state });

test('one deployment in progress per environment', () => {
  const { check } = invariants.oneInProgress;
  const other = deployment({ id: 'd2' });
  assert.equal(check(commit({}, { deployment: [deployment({}), deployment({ id: 'd2', finished_at: 5 })] })), null);
  assert.match(check(commit({}, { deployment: [deployment({}), other] }))!, /d and d2/);
});

test('a deployment takes only the steps of its diagram', () => {
  const { check } = invariants.onlyLegalSteps;
  const before = { deployment: [deployment({})] };
  const to = (state: string, version: number) => commit(before, { deployment: [deployment({ state, version })] });
  assert.equal(check(to('canary', 3)), null);
  assert.match(check(to('succeeded', 3))!, /from starting to succeeded/);
  assert.match(check(to('starting', 1))!, /went back/);
});

test('exactly one end event per deployment', () => {
  const { check } = invariants.oneEndEvent;
  const ended = { deployment: [deployment({ state: 'failed', finished_at: 9 })] };
  const end = { type: 'deployment.failed', deployment: 'd' };
  assert.equal(check(commit({}, { ...ended, event: [end] })), null);
  assert.match(check(commit({}, ended))!, /0 end events/);
  assert.match(check(commit({}, { ...ended, event: [end, end] }))!, /2 end events/);
});

test('timelines and active revisions', () => {
  const timeline = [1, 2, 4].map((seq) => ({ deployment_id: 'd', seq }));
  assert.match(invariants.timelinesWithoutGaps.check(commit({}, { deployment_timeline: timeline }))!, /entry 4/);
  const active = commit({}, { revision: [revision(1, 100), revision(2, 0)] });
  assert.match(invariants.oneActiveRevision.check(active)!, /two active/);
});

test('sequences without gaps', () => {
  const { check } = invariants.sequencesWithoutGaps;
  const numbered = (...list: number[]) => list.map((sequence) => ({ id: `e${sequence}`, project_id: 'p', sequence }));
  const project = [{ id: 'p', next_sequence: 3 }];
  assert.equal(check(commit({}, { project, event: numbered(1, 2) })), null);
  assert.match(check(commit({}, { project, event: numbered(1, 3) }))!, /number 3/);
  assert.match(check(commit({}, { project, event: numbered(1) }))!, /goes on with 3/);
  const twice = [1, 1].map((position) => ({ id: 'x', webhook_id: 'w', position }));
  assert.match(invariants.strictPositionsWithoutGaps.check(commit({}, { delivery: twice }))!, /position 1/);
});

test('shares sum to 100 and name what serves', () => {
  const sum = invariants.sharesSumTo100.check;
  assert.equal(sum(commit({}, { revision: [revision(1, 90), revision(2, 10, 'canary')] })), null);
  assert.match(sum(commit({}, { revision: [revision(1, 90), revision(2, 5, 'canary')] }))!, /sum to 95/);
  assert.match(sum(commit({}, { revision: [revision(1, 0)] }))!, /sum to 0/);
  const moved = (healthy: number, rollout = deployment({}), before = rollout) =>
    commit(
      { revision: [revision(1, 100), revision(2, 0)], deployment: [before] },
      {
        revision: [revision(1, 0), revision(2, 100)],
        instance: [instance('i', healthy, 'healthy')],
        deployment: [rollout],
      },
    );
  assert.equal(invariants.sharesNameWhatServes.check(moved(2)), null);
  assert.match(invariants.sharesNameWhatServes.check(moved(1))!, /r2 .* no healthy instance/);
  const aborted = deployment({ state: 'aborting', revision: 2, previous_revision: 1 });
  assert.equal(invariants.abortsTakeTraffic.check(moved(1)), null);
  assert.equal(invariants.abortsTakeTraffic.check(moved(2, aborted)), null);
  assert.match(invariants.abortsTakeTraffic.check(moved(1, aborted))!, /r2 .* is being aborted and gets 100 %/);
  const going = { ...aborted, state: 'promoting' as const };
  assert.equal(invariants.abortsTakeTraffic.check(moved(1, aborted, going)), null, 'the share rose before the abort');
  const rest = invariants.allTrafficWithoutRollout.check;
  const shared = { revision: [revision(1, 90), revision(2, 10, 'failed')] };
  assert.equal(rest(commit({}, { ...shared, deployment: [deployment({ finished_at: null })] })), null);
  assert.match(rest(commit({}, { ...shared, deployment: [deployment({ finished_at: 1 })] }))!, /r1 of p e is active/);
  assert.equal(rest(commit({}, { revision: [revision(1, 100), revision(2, 0, 'failed')] })), null);
});

test('a rollout never takes the serving instances below their number', () => {
  const { check } = invariants.rolloutsKeepWhatServes;
  const before = { instance: [instance('a', 1, 'healthy'), instance('b', 1, 'healthy')] };
  const rollout = [deployment({ revision: 2, previous_revision: 1 })];
  const drained = [instance('a', 1, 'draining'), instance('b', 1, 'healthy')];
  assert.match(check(commit(before, { instance: drained, deployment: rollout }))!, /1 of 2 serve/);
  const replaced = [...drained, instance('c', 2, 'healthy')];
  assert.equal(check(commit(before, { instance: replaced, deployment: rollout })), null);
});

test('only the holder of the lease changes instances', () => {
  const { check } = invariants.onlyTheHolderActs;
  const changed = (owner: string) =>
    commit({}, { instance: [instance('a', 1, 'starting')], environment_lease: [{ ...at, owner, until: 9 }] });
  assert.equal(check(changed('run_1')), null);
  assert.match(check(changed('run_2'))!, /run_2 has the lease/);
  const other = { environment_lease: [{ ...at, owner: 'run_2', until: 9 }] };
  assert.match(check({ ...commit({}, other), leased: at })!, /run_1 wrote for p e; run_2 has the lease/);
});

test('no instance is stopped before routers and requests have left it', () => {
  const spec = { id: 'i', project: 'p', environment: 'e' };
  const router = {
    ...{ name: 'router', targets: new Set(['i']), leftAt: new Map(), beatAt: 10_000, liveSince: 0, calmSince: 0 },
    targetAt: () => undefined,
  };
  const stopped = (more: Partial<typeof router>, drainingSince: number | null = 5000) =>
    isStoppedTooEarly({
      instance: { spec, state: 'running' } as SimulatedInstance,
      facts: facts({ environment: [{ project_id: 'p', name: 'e' }] }),
      routers: [{ ...router, ...more }],
      leaseMs: 15_000,
      nowMs: 20_000,
      drainingSince,
      drainMs: 3000,
    });
  assert.match(stopped({})!, /router routes to it/);
  assert.match(stopped({}, null)!, /router routes to it/);
  assert.equal(stopped({ beatAt: 1000 }), null, 'it is gone');
  assert.equal(stopped({ liveSince: 9000 }), null, 'it was gone meanwhile');
  const left = (at: number) => ({ targets: new Set<string>(), leftAt: new Map([['i', at]]) });
  assert.match(stopped(left(17_001))!, /2999 of 3000 ms/);
  assert.equal(stopped(left(17_000)), null);
  assert.equal(stopped(left(19_000), null), null, 'one that was given up has no requests to finish');
});

test('orphans are swept, rollouts end before their deadlines', () => {
  const orphans = new Map([['i', 0]]);
  assert.equal(findOldOrphan(orphans, [{ calmSince: 0 }], 0, 4000, 20_000), null);
  assert.match(findOldOrphan(orphans, [{ calmSince: 0 }, { calmSince: 19_000 }], 0, 4000, 22_000)!, /i has run/);
  assert.equal(findOldOrphan(orphans, [{ calmSince: 19_000 }], 0, 4000, 22_000), null);
  const late = facts({ deployment: [deployment({})] });
  const deadlines = new Map([['d', 1000]]);
  assert.equal(findLateRollout(late, deadlines, 0, 20_000), null);
  assert.match(findLateRollout(late, deadlines, 0, 60_000)!, /d is starting/);
});

test('every delivery arrives at least once, in order, with equal bytes', () => {
  const arrival = { at: 0, url: 'u', delivery: 'b', event: 'e', body: 'x', status: 200 };
  const delivery = (id: string, position: number, state = 'pending') => ({ id, webhook_id: 'w', position, state });
  const none = { byDelivery: new Map() };
  const stored = { ...delivery('b', 2), event_id: 'e', test_body: null };
  const event = { id: 'e', project_id: 'p', type: 't', sequence: 1, deployment: null, alert: null };
  assert.equal(arrivedWithEqualBytes(arrival, stored, { ...event, body: 'x' }, none), null);
  assert.match(arrivedWithEqualBytes(arrival, stored, { ...event, body: 'y' }, none)!, /other bytes/);
  assert.equal(overtakes(arrival, facts({ delivery: [delivery('a', 1, 'failed'), delivery('b', 2)] })), null);
  assert.match(overtakes(arrival, facts({ delivery: [delivery('a', 1), delivery('b', 2)] }))!, /b arrived before a/);
  const marked = commit({ delivery: [delivery('b', 2)] }, { delivery: [delivery('b', 2, 'succeeded')] });
  assert.match(findUnsentSuccess(marked, none)!, /no receiver has it/);
  assert.equal(findUnsentSuccess(marked, { byDelivery: new Map([['b', [arrival]]]) }), null);
});

test('an acknowledged write is there, a refused one is not', () => {
  const write: Write = {
    kind: 'project',
    mark: 'm',
    answer: 'acknowledged',
    id: 'p',
    projectId: null,
    mayBeGone: false,
  };
  const there = facts({ project: [{ id: 'p', name: 'm' }] });
  assert.equal(findLostWrite([write], there), null);
  assert.match(findLostWrite([write], facts({}))!, /is not there/);
  assert.match(findWrongWrite([{ ...write, answer: 'refused' }], there)!, /was refused and is there/);
  const twice = facts({ project: ['p', 'q'].map((id) => ({ id, name: 'm' })) });
  assert.match(findWrongWrite([write], twice)!, /2 times/);
  const old = facts({ deployment: [deployment({ version: 2 })] });
  assert.match(findLostVersion([{ kind: 'deployment', id: 'd', version: 3 }], old)!, /3 was acknowledged/);
});

test('everything calms down', () => {
  const kept = {
    environment: [{ project_id: 'p', name: 'e', replicas: 1 }],
    revision: [revision(1, 100)],
    instance: [instance('i', 1, 'healthy')],
  };
  const instances = new Map([['i', { state: 'running' } as SimulatedInstance]]);
  const routers = [{ name: 'router', targets: new Set(['i']) }];
  const calm = { facts: facts(kept), instances, sets: new Set<string>(), routers };
  assert.equal(findUnrest(calm), null);
  assert.match(findUnrest({ ...calm, instances: new Map() })!, /0 good instances/);
  assert.match(findUnrest({ ...calm, sets: new Set(['set_lost']) })!, /set_lost has no row/);
  const old = { id: 'set_old', project_id: 'p', environment: 'e', revision: 2 };
  assert.match(
    findUnrest({ ...calm, facts: facts({ ...kept, instance_set: [old] }) })!,
    /set_old of r2 .* still there/,
  );
  assert.match(findUnrest({ ...calm, routers: [{ name: 'router', targets: new Set() }] })!, /old table/);
  assert.match(findUnrest({ ...calm, facts: facts({ ...kept, deployment: [deployment({})] }) })!, /is starting/);
});

test('a step of a canary is judged by its own requests', () => {
  const { check } = invariants.stepsAreJudgedAlone;
  const step = (canary_step: number, step_since: number) => ({ deployment: [deployment({ canary_step, step_since })] });
  assert.equal(check(commit(step(1, 5), step(2, 9))), null);
  assert.match(check(commit(step(1, 5), step(2, 5)))!, /step 2 of d is judged by what was measured since step 1/);
});

test('a canary of which everything failed, and nothing of stable, is promoted by people only', () => {
  const { check } = invariants.failuresAreNotPromoted;
  const row = (state: string) => deployment({ state, revision: 2, previous_revision: 1, canary_step: 1 });
  const promoted = (stableErrors: number, canaryErrors: number, message = 'Too few requests to tell.') => {
    const of = (number: number, errors: number) => ({ ...at, revision: number, requests: 5, errors });
    const before = { deployment: [row('canary')], traffic: [of(1, stableErrors), of(2, canaryErrors)] };
    const said = [{ deployment_id: 'd', seq: 1, message }];
    return check(commit(before, { deployment: [row('promoting')], deployment_timeline: said }));
  };
  assert.match(promoted(0, 5)!, /d is promoted, though all 5 requests to r2 failed/);
  assert.deepEqual([promoted(0, 4), promoted(1, 5), promoted(0, 5, 'Promoted by ci.')], [null, null, null]);
});

test('what is said of a canary is what is done', () => {
  const { check } = invariants.verdictsAreKeptTo;
  const said = (message: string) =>
    check(commit({}, { deployment_timeline: [{ deployment_id: 'd', seq: 1, message }] }));
  const alone =
    'Too few requests to tell: 1 of 2 requests failed (50 %); of the stable revision 0 of 4 requests failed (0 %).';
  assert.match(said(`${alone} Moving all traffic.`)!, /^d: Too few/);
  assert.match(said(`50 % of requests go to the new revision. ${alone}`)!, /^d: 50 %/);
  const worse =
    'The canary is worse: 4 of 4 requests failed (100 %); of the stable revision 0 of 44 requests failed (0 %).';
  assert.match(said(`${worse} Paused, because only the canary had errors.`)!, /^d: The canary/);
  const right = [worse, `${worse} Paused.`, `${alone} Paused, because only the canary had errors.`];
  for (const message of right) assert.equal(said(message), null);
  assert.equal(said(`${alone.replace('0 of 4', '1 of 4')} Moving all traffic.`), null);
});

test('an instance that fails its health check is not healthy', () => {
  const healthy = facts({ instance: [instance('i', 1, 'healthy')] });
  const sick = (ms: number) => () => ms;
  assert.match(findUntoldSick(healthy, sick(12_000), 0, 60_000)!, /i is healthy, and has failed .* 12000 ms/);
  assert.equal(findUntoldSick(healthy, sick(9000), 0, 60_000), null);
  assert.equal(findUntoldSick(healthy, sick(12_000), 55_000, 60_000), null, 'a fault has touched who checks');
  assert.equal(findUntoldSick(facts({ instance: [instance('i', 1, 'unhealthy')] }), sick(12_000), 0, 60_000), null);
});

test('alerts have one event for each of their changes', () => {
  const { check } = invariants.oneEventPerChangeOfAlert;
  const alert = (resolved_at: number | null) => ({ alert: [{ id: 'a', resolved_at }] });
  const event = (...types: string[]) => ({ event: types.map((type) => ({ type, alert: 'a', deployment: null })) });
  assert.equal(check(commit({}, { ...alert(null), ...event('alert.fired') })), null);
  assert.equal(check(commit({}, { ...alert(9), ...event('alert.fired', 'alert.resolved') })), null);
  assert.match(check(commit({}, { ...alert(9), ...event('alert.fired') }))!, /0 for being resolved/);
  assert.match(check(commit({}, { ...alert(null), ...event('alert.fired', 'alert.fired') }))!, /2 events for firing/);
});

test('an instance is removed under the lease of its environment', () => {
  const { check } = invariants.removedUnderTheLease;
  const environment = (deleted_at: number | null) => ({
    environment: [{ project_id: 'p', name: 'e', deleted_at }],
    environment_lease: [{ ...at, owner: 'run_1', until: 9 }],
  });
  const removed = (deletedAt: number | null) =>
    commit({ instance: [instance('i', 1, 'healthy')] }, { ...environment(deletedAt), instance: [] });
  assert.match(check(removed(null))!, /i of p e was removed without the lease/);
  assert.equal(check({ ...removed(null), leased: at }), null);
  assert.equal(check(removed(5)), null, 'its environment is being deleted');
});

test('no visitor is sent to an instance that is not healthy', () => {
  const router = { name: 'router', targets: new Set(['i']), calmSince: 0 };
  const unfit = new Map([['i', 1000]]);
  assert.equal(findRoutedUnfit(router, unfit, 9000), null);
  assert.match(findRoutedUnfit(router, unfit, 9001)!, /router routes to i, .* 8001 ms/);
  assert.equal(findRoutedUnfit({ ...router, calmSince: 2000 }, unfit, 9001), null, 'a fault has touched it');
});

test('a port rests before it is used again', () => {
  const history: PortHistory = new Map();
  const has = (port: number, id: string) =>
    facts({ instance: [instance(id, 1, 'healthy')], instance_port: [{ port, instance_id: id }] });
  assert.equal(findReusedPort(has(1, 'a'), history, 0), null);
  assert.equal(findReusedPort(has(2, 'b'), history, 1000), null);
  assert.match(findReusedPort(has(1, 'b'), history, 60_000)!, /b has port 1, which a had 60000 ms ago/);
  assert.equal(findReusedPort(has(2, 'c'), history, 400_000), null);
});

test('a request is counted once', () => {
  const stored = (requests: number) => facts({ traffic: [{ ...at, revision: 1, requests }] });
  const sent = new Map([['p e 1', 20]]);
  assert.equal(findCountedTwice(stored(20), sent), null);
  assert.match(findCountedTwice(stored(21), sent)!, /21 requests are stored of r1 of p e, and 20 were sent/);
});

test('a canary is seen by its share of the visitors, and none of them moves back', () => {
  const visits = new Visits();
  const wrong: string[] = [];
  visits.onWrong = (invariant) => wrong.push(invariant);
  const table = (percent: number) =>
    visits.noteShares({
      ...{ project: 'p', environment: 'e', hosts: [] },
      shares: [
        { revision: 1, percent: 100 - percent, targets: [] },
        { revision: 2, percent, targets: [] },
      ],
    });
  table(10);
  assert.deepEqual(wrong, []);
  table(0.005); // not a whole number of buckets
  visits.noteSide(at, { revision: 2, percent: 10 }, 77, true);
  visits.noteSide(at, { revision: 2, percent: 5 }, 77, false);
  assert.deepEqual(wrong.splice(0), ['a canary is seen by its share of the visitors']);
  visits.noteSide(at, { revision: 2, percent: 30 }, 77, false);
  assert.deepEqual(wrong, ['no visitor moves back']);
});

test('a signal follows its commit', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-signals-'));
  after(() => rmSync(dataDir, { recursive: true }));
  const { db, close } = await openDatabase({
    url: null,
    dataDir,
    onConnectionLost: () => {},
  });
  const seen: (string | null)[] = [];
  watchSignals(db, (message) => seen.push(message));
  await db.transaction().execute(async (tx) => publish(tx, 'routing', null));
  assert.deepEqual(seen.splice(0), [null]);
  await db.transaction().execute(async () => publish(db, 'routing', null));
  assert.deepEqual(seen.splice(0), ['a signal routing was published before the commit']);
  await db.transaction().execute(async () => noteWritten('routing'));
  assert.deepEqual(seen, ['routing was written, and no signal routing published']);
  await close();
});

test('what no seed reaches is missing in the coverage', () => {
  const all = Object.fromEntries(expected.map((name) => [name, 1]));
  assert.deepEqual(readCoverage([all]).missing, []);
  const { 'verdict bad': _, ...rest } = all;
  assert.deepEqual(readCoverage([rest, { 'verdict good': 2 }]).missing, ['verdict bad']);
});

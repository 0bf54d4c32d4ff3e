import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Deployment, DeploymentState } from '../../contract/deployments.ts';
import { environmentDefaults } from '../../contract/environments.ts';
import type { Instance } from '../../contract/instances.ts';
import { advance, decide, hold, type Observed, type Policy, type Rollout } from '../../deployments/rules/rollout.ts';
import type { Paint } from '../terminal/output.ts';
import { widthOf } from '../terminal/table.ts';
import { pastLines, presentLines, type Scene, stagesOf, summaryLines, timeBar } from './rollout-story.ts';

const begun = Date.parse('2026-11-15T12:00:00Z');
const paint: Paint = (_colour, text) => text;
const red: Paint = (colour, text) => (colour === 'red' ? `<${text}>` : text);
const canaryPolicy = { ...environmentDefaults.canary, steps: [50], warmup_s: 0, bake_s: 60 };
const scene: Scene = { now: begun + 20_000, columns: 80, paint, policy: canaryPolicy, instances: null };

type Said = [afterS: number, state: DeploymentState, message: string];

const timelineOf = (said: Said[]): Deployment['timeline'] =>
  said.map(([afterS, state, message]) => ({ at: new Date(begun + afterS * 1000).toISOString(), state, message }));

// The messages are those of the service's own rules: a story that could not read them would fall apart here.
const policy: Policy = { canary: canaryPolicy, autoRollback: true, startTimeoutS: 60 };
const rollout = { state: 'canary', strategy: 'canary', percents: [10, 50], step: 1 } as unknown as Rollout;
const messageOf = (state: DeploymentState, seen: object): string => {
  const observed = {
    regionAvailable: true,
    image: null,
    lastMessage: null,
    isUnreported: false,
    trouble: null,
    ...seen,
  };
  const before = { ...rollout, state, hasPrevious: true, deadlineAt: Number.POSITIVE_INFINITY };
  return decide(before, observed as Observed, { ...policy, pullTimeoutS: 60 }, begun)!.message;
};
const pulling = messageOf('queued', {});
const exposed = messageOf('preparing', { image: { digest: 'sha256:abc', port: 3000 } });
const firstStep = messageOf('starting', { target: { wanted: 1, healthy: 1 } });
const good = 'The canary is good: 0 of 400 requests failed (0.0 %).';
const secondStep = advance(rollout, policy, begun, good).message;
const allTraffic = advance({ ...rollout, step: 2 }, policy, begun, 'Promoted by ci.').message;
const paused = hold(rollout, policy, begun, 'Paused.').message;

const begins: Said[] = [
  [0, 'queued', 'Accepted.'],
  [0.2, 'preparing', pulling],
  [2.3, 'starting', exposed],
  [4.1, 'canary', firstStep],
];

const deployment = {
  id: 'dpl_01k9xw3v5qfk2t8m7c4b6d9e0h',
  environment: 'production',
  revision: 'r8',
  previous_revision: 'r7',
  image: 'registry.example/shop:2',
  digest: `sha256:${'e3467bf974ba'.repeat(5)}`,
  local: false,
  strategy: 'canary',
  canary_percent: 10,
  state: 'canary',
  created_at: '2026-11-15T12:00:00Z',
  started_at: '2026-11-15T12:00:00Z',
  finished_at: null,
  failure: null,
  timeline: timelineOf(begins),
  canary: {
    phase: 'baking',
    step: 1,
    percent: 10,
    until: '2026-11-15T12:01:04Z',
    stable: { requests: 1204, error_rate: 0.001, client_error_rate: 0.01, p95_ms: 12.3 },
    canary: { requests: 131, error_rate: 0.05, client_error_rate: 0.02, p95_ms: null },
    analysis: {
      verdict: 'inconclusive',
      reason: 'Too few requests to tell: 7 of 131 requests failed (5.3 %); of the stable revision 1 of 1,204 (0.1 %).',
      evidence: { errors: 41.7, latency: 0, client_errors: 1e9, needed: 800 },
    },
  },
} as unknown as Deployment;

const canaryWith = (more: object) => ({ ...deployment, canary: { ...deployment.canary!, ...more } }) as Deployment;
const present = (of: Deployment, more: Partial<Scene> = {}) =>
  presentLines(stagesOf(of.timeline).at(-1)!, of, { ...scene, ...more });

function past(said: Said[], more: Partial<Scene> = {}, of: Deployment = deployment): string[] {
  const stages = stagesOf(timelineOf(said)).filter(({ until }) => until !== null);
  return stages.flatMap((stage) => pastLines(stage, of, { ...scene, ...more }));
}

test('a canary that goes through its steps: each with how long it took, and what was found out in it', () => {
  const said: Said[] = [
    ...begins,
    [20, 'canary', paused],
    [30, 'canary', firstStep],
    [94, 'canary', secondStep],
    [100, 'promoting', allTraffic],
    [103, 'succeeded', 'It serves all traffic.'],
  ];
  assert.deepEqual(past(said), [
    '  image     ready after 2.1 s, sha256:e3467bf974ba…',
    '  start     healthy after 1.8 s',
    '            It exposes port 3000, and the environment sets none: that is used.',
    '  10 %      held for 26 s',
    '            Paused.',
    '  10 %      held for 1 min 4 s',
    '            The canary is good: 0 of 400 requests failed (0.0 %).',
    '  50 %      held for 6.0 s',
    '            Promoted by ci.',
    '  100 %     reached after 3.0 s',
  ]);
  assert.equal(past([...begins.slice(0, 1), [3, 'preparing', pulling]])[0], '  queue     waited 3.0 s');
  const local = { ...deployment, local: true };
  assert.match(past(begins, {}, local)[0]!, /^ {2}image {5}the one on this engine, sha256:e3467bf974ba…$/);
});

test('what was undone and what never became healthy is red, and its reason is left to the end', () => {
  const undone: Said[] = [
    ...begins,
    [52, 'aborting', 'The canary is worse: it failed.'],
    [53.2, 'failed', 'The previous revision serves all traffic.'],
  ];
  assert.deepEqual(past(undone, { paint: red }).slice(-2), [
    '  10 %      <undone after 48 s>',
    '  undo      The previous revision serves all traffic, after 1.2 s',
  ]);
  const instances = [{ state: 'healthy' }, { state: 'starting' }, { state: 'ended' }] as Instance[];
  const unhealthy: Said[] = [...begins.slice(0, 3), [22.3, 'failed', 'No healthy instance within 20 s.']];
  assert.equal(past(unhealthy, { instances, paint: red })[1], '  start     <1 of 2 healthy after 20 s>');
  assert.equal(past([...begins.slice(0, 1), [2, 'canceled', 'Aborted by ci.']])[0], '  queue     canceled after 2.0 s');
});

test('a canary: how far the step is, both sides below each other, the verdict, and what comes next', () => {
  assert.deepEqual(present(deployment), [
    `  10 %      ▕${'█'.repeat(8)}${' '.repeat(22)}▏ 0:44 left`,
    '                      requests  errors    4xx    p95',
    '            r8  10 %       131   5.0 %  2.0 %      -',
    '            r7  90 %     1,204   0.1 %  1.0 %  12 ms',
    '            Too few requests to tell: 7 of 131 requests failed (5.3 %); of the',
    '            stable revision 1 of 1,204 (0.1 %). So far 41 to 1 speaks against',
    '            it; at 800 to 1 it is undone.',
    '            next: 50 % → 100 %, 1 min 0 s each',
    '  Ctrl-C leaves it running: sluice status · sluice promote · sluice abort',
  ]);
  assert.match(present(deployment, { paint: red })[2]!, /<5\.0 %>.*<2\.0 %>/, 'what is worse is red');
  assert.equal(present(deployment, { policy: null }).length, 8, 'a token that may not read environments');
});

test('what it waits for is said with the command that helps', () => {
  assert.match(present(canaryWith({ phase: 'paused' }))[0]!, /paused: sluice resume/);
  assert.match(present(canaryWith({ phase: 'awaiting_approval', until: null }))[0]!, /waits for you: sluice promote/);
  assert.match(present(canaryWith({ until: '2026-11-15T12:00:00Z' }))[0]!, /waiting for requests/);
  const last_check = { at: '', ok: false, message: 'GET /health: 503' };
  const instances = [
    { state: 'healthy', last_check: null },
    { state: 'starting', last_check },
  ] as Instance[];
  const starting = { ...deployment, canary: null, timeline: timelineOf(begins.slice(0, 3)) };
  const [start, , why, leave] = present(starting, { instances });
  assert.match(start!, /^ {2}start {5}\S 1 of 2 healthy, 18 s$/);
  assert.deepEqual(
    [why, leave],
    ['            GET /health: 503', '  Ctrl-C leaves it running: sluice status · sluice abort'],
  );
});

test('no line is wider than a narrow terminal, whatever the share', () => {
  for (let percent = 1; percent < 100; percent++) {
    for (const line of present(canaryWith({ percent }), { columns: 60 }).slice(0, -1))
      assert.ok(widthOf(line) < 60, line);
    assert.equal(timeBar(percent / 100, 10, paint).length, 12);
  }
});

test('what is left at the end', () => {
  const finished = { ...deployment, canary: null, finished_at: '2026-11-15T12:01:12Z' };
  const environment = { url: 'http://shop.example', active_revision: 'r7' };
  const out = { paint, columns: null };
  assert.deepEqual(summaryLines({ ...finished, state: 'succeeded' }, environment, out), [
    '✔ succeeded: r8 serves all of production, after 1 min 12 s',
    '  http://shop.example',
  ]);
  const failure = { code: 'crashed', message: 'It ended.', log_tail: ['\x1b[31mboom\x1b[0m'] } as const;
  const failed = { ...finished, state: 'failed', failure } as unknown as Deployment;
  assert.deepEqual(summaryLines(failed, environment, out), [
    '  │ boom',
    '✖ failed after 1 min 12 s: It ended. (crashed)',
    '  r7 still serves production.',
    '  Are its variables right? sluice env show · sluice logs r8',
  ]);
  const undone = { ...failed, timeline: timelineOf([...begins, [52, 'aborting', 'It ended.']]) };
  assert.deepEqual(summaryLines(undone, { ...environment, active_revision: 'r8' }, { paint, columns: 40 }).slice(1), [
    '✖ undone after 1 min 12 s: It ended.',
    '  (crashed)',
    '  r8 serves production.',
    '  Are its variables right? sluice env',
    '  show · sluice logs r8',
  ]);
  assert.match(
    summaryLines({ ...failed, previous_revision: null }, null, out)[2]!,
    /^ {2}Nothing serves production\.$/,
  );
});

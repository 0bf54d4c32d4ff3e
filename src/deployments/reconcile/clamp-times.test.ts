import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type DeploymentState, deploymentStates } from '../../contract/deployments.ts';
import type { CanaryPolicy } from '../../contract/environments.ts';
import { queuedForMs, type Rollout, type RolloutPolicy } from '../rules/rollout.ts';
import { clampToLatest } from './clamp-times.ts';

const nowMs = 1_000_000_000;
const hourMs = 3600_000;
const policy: RolloutPolicy = {
  canary: { bake_s: 60, warmup_s: 0, approval_timeout_s: 600 } as CanaryPolicy,
  autoRollback: true,
  startTimeoutS: 30,
  pullTimeoutS: 900,
};
const rollout = (state: DeploymentState, more: Partial<Rollout> = {}): Rollout => ({
  state,
  strategy: 'canary',
  hasPrevious: true,
  percents: [10],
  step: 1,
  phase: state === 'canary' ? 'baking' : null,
  stepUntil: null,
  replaced: null,
  deadlineAt: nowMs,
  cause: null,
  ...more,
});
const mended = (state: DeploymentState, more: Partial<Rollout>) => clampToLatest(rollout(state, more), policy, nowMs);

const longest: Record<Exclude<DeploymentState, 'succeeded' | 'failed' | 'canceled'>, number> = {
  queued: queuedForMs,
  preparing: 900_000,
  starting: 30_000,
  canary: 60_000 + hourMs / 2,
  promoting: 330_000,
  aborting: 300_000,
};

test('a deadline further ahead than the state can last is brought back, any other stays', () => {
  for (const [state, ms] of Object.entries(longest) as [keyof typeof longest, number][]) {
    assert.equal(mended(state, { deadlineAt: nowMs - hourMs }), null, state);
    assert.equal(mended(state, { deadlineAt: nowMs + ms }), null, state);
    assert.deepEqual(mended(state, { deadlineAt: nowMs + ms + hourMs }), { deadline_at: nowMs + ms, step_until: null });
  }
  const ended = deploymentStates.filter((state) => !(state in longest));
  for (const state of ended) assert.equal(mended(state, { deadlineAt: Number.POSITIVE_INFINITY }), null);
});

test('a canary bakes no longer than it should, and waits no longer for people', () => {
  const deadlineAt = nowMs + 1000;
  assert.equal(mended('canary', { deadlineAt, stepUntil: nowMs + 60_000 }), null);
  assert.deepEqual(mended('canary', { deadlineAt, stepUntil: nowMs + hourMs }), {
    deadline_at: deadlineAt,
    step_until: nowMs + 60_000,
  });
  assert.deepEqual(mended('canary', { phase: 'paused', deadlineAt: nowMs + hourMs }), {
    deadline_at: nowMs + 600_000,
    step_until: null,
  });
});

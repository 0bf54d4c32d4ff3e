// So that the simulation can fail: faults that somebody could make in the code, each put into a copy of it. A fault whose
// `from` is not in the file exactly once is out of date, and says so.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

interface Edit {
  file: string;
  from: string;
  to: string;
}

export interface DeliberateFault extends Edit {
  /** What the code does wrong then. */
  what: string;
  /** A second place that has to change. */
  also?: Edit;
  /** Tests that should know, beside the simulation. */
  tests?: string[];
  /** Why nothing finds it, where that is so. */
  survives?: string;
}

export const deliberateFaults: Record<string, DeliberateFault> = {
  'acknowledge-before-commit': {
    what: 'A request is answered when its transaction is about to commit.',
    file: 'src/db/transactions.ts',
    from: `const result = await execute((tx) => {
          scopes.set(tx, scope);
          return work(tx);
        });`,
    to: `const result = await new Promise<T>((resolve, reject) => {
          execute(async (tx) => {
            scopes.set(tx, scope);
            resolve(await work(tx));
          }).catch(reject);
        });`,
  },
  'skip-the-fence': {
    what: 'A process that was held up writes with a lease that another has by now.',
    file: 'src/deployments/reconcile/environment-leases.ts',
    from: 'if (!(await own.forShare().executeTakeFirst())) lost();',
    to: 'await own.forShare().executeTakeFirst();',
  },
  'stop-before-the-routers-moved': {
    what: 'A healthy instance is stopped as soon as it is marked as draining.',
    file: 'src/deployments/reconcile/keeper.ts',
    from: "if (isMarked && row.state === 'starting') stop(",
    to: 'if (isMarked) stop(',
  },
  'cut-the-drain-short': {
    what: 'An instance is stopped as soon as no router sends it requests, with those it has got unfinished.',
    file: 'src/deployments/reconcile/keeper.ts',
    from: 'unroutedForMs < seen.environment.drain_s * 1000',
    to: 'unroutedForMs < seen.environment.drain_s',
  },
  'deadlines-by-the-clock': {
    what: 'The deadlines of rollouts go by the time of day of whichever process looks at them.',
    file: 'src/lib/clock.ts',
    from: 'clock.deadline?.() ?? clock.now()',
    to: 'clock.now()',
  },
  'event-outside-the-transaction': {
    what: 'The end of a deployment is committed first, its event after that.',
    file: 'src/deployments/save-step.ts',
    from: 'if (saved.finished_at !== null) await insertEndEvent(tx, parts, saved);',
    to: `if (saved.finished_at !== null) {
    const { scopeOf } = await import('../db/transactions.ts');
    const { root, onCommit } = scopeOf(tx)!;
    onCommit.push(() => void root.transaction().execute((later) => insertEndEvent(later, parts, saved)));
  }`,
  },
  'lose-the-version-guard': {
    what: 'A step of a deployment is written even if another was taken meanwhile.',
    file: 'src/deployments/deployment-queries.ts',
    from: "tx.updateTable('deployment').set(changed).where('id', '=', row.id).where('version', '=', row.version),",
    to: "tx.updateTable('deployment').set(changed).where('id', '=', row.id),",
    survives:
      'It takes a command of a person between what a pass reads and the step it writes, which not every hundred seeds have.',
  },
  'lose-the-guard-on-shares': {
    what: 'Traffic moves for a deployment that has changed since it was read.',
    file: 'src/deployments/traffic-shares.ts',
    from: 'await lockDeployment(tx, deployment);',
    to: '',
    survives:
      'It takes an abort between two statements of a pass, and the next pass, a moment later, puts the shares right.',
  },
  'rest-shares-on-what-was': {
    what: 'Traffic moves to a revision for instances that are gone by then.',
    file: 'src/deployments/traffic-shares.ts',
    from: 'await lockHealthy(tx, instances);',
    to: '',
    survives:
      'One of 500 seeds found it when it was in the code: it takes the last healthy instance to end between two statements.',
  },
  'drain-one-too-many': {
    what: 'A rolling deployment takes one more old instance away than new ones are healthy.',
    file: 'src/deployments/rules/desired.ts',
    from: 'previous: previous - healthy,',
    to: 'previous: Math.max(0, previous - healthy - 1),',
  },
  'leave-sets': {
    what: 'An environment that runs nothing is left alone although its engine still has a set of it.',
    file: 'src/deployments/reconcile/reconcile-pass.ts',
    from: 'instances.length === 0 && sets.length === 0',
    to: 'instances.length === 0',
  },
  'leave-orphans': {
    what: 'Instances without a row are not searched for.',
    file: 'src/deployments/reconcile/orphans.ts',
    from: '!known.has(id) && !hostAway);',
    to: '!known.has(id) && !hostAway && region.name === null);',
  },
  'take-any-answer': {
    what: 'A delivery counts as delivered whatever the receiver answers.',
    file: 'src/webhooks/outcome-writer.ts',
    from: 'status !== null && status >= 200 && status < 300;',
    to: 'status !== null;',
  },
  'one-bucket-too-many': {
    what: 'A canary is seen by one visitor in ten thousand more than its share.',
    file: 'src/traffic/balance.ts',
    from: 'Math.round((percent * buckets) / 100);',
    to: 'Math.round((percent * buckets) / 100) + 1;',
    tests: ['src/traffic/balance.test.ts'],
  },
  'visitors-move-back': {
    what: 'Raising the percentage of a canary takes other visitors in.',
    file: 'src/traffic/balance.ts',
    from: '(bucket + canaryOffset(revision)) % buckets < canaryLimit(percent);',
    to: '(bucket + canaryOffset(revision + percent)) % buckets < canaryLimit(percent);',
    tests: ['src/traffic/balance.test.ts'],
  },
  'judge-by-earlier-steps': {
    what: 'A later step of a canary is judged by the requests of the first one, too.',
    file: 'src/deployments/save-step.ts',
    from: '...(step.begins && (await',
    to: '...(step.begins && row.canary_step === 0 && (await',
  },
  'keep-what-is-proved-bad': {
    what: 'A canary that is proved to be worse is not undone.',
    file: 'src/deployments/rules/rollout.ts',
    from: "if (analysis.verdict === 'bad') {",
    to: "if (analysis.verdict === 'bad' && policy.autoRollback === null) {",
    tests: ['src/deployments/rules/rollout.test.ts'],
  },
  'promote-what-failed-alone': {
    what: 'A canary that had errors where stable had none is promoted when the step ends.',
    file: 'src/deployments/rules/rollout.ts',
    from: 'if (!failedAlone) return goOn(',
    to: 'if (failedAlone !== null) return goOn(',
    tests: ['src/deployments/rules/rollout.test.ts'],
  },
  'leave-unhealthy-routed': {
    what: 'Routers are not told that an instance is healthy, or not healthy any more.',
    file: 'src/deployments/reconcile/refresh-instances.ts',
    from: `throw new ChangedMeanwhile();
    await markRoutingChanged(tx, keyOf(row));`,
    to: 'throw new ChangedMeanwhile();',
  },
  'never-unhealthy': {
    what: 'An instance that fails its health check goes on as healthy.',
    file: 'src/deployments/reconcile/refresh-instances.ts',
    from: "if (seen === 'unhealthy' && row.state === 'healthy')",
    to: "if (seen === 'unhealthy' && row.state === 'starting')",
  },
  'route-whoever-runs': {
    what: 'The routing table has instances that are not healthy.',
    file: 'src/traffic/load-routes.ts',
    from: "and instance.host <> '' and (instance.state = 'healthy' or",
    to: "and instance.host <> '' and (instance.state <> 'starting' or",
  },
  'reuse-ports-at-once': {
    what: 'The port of an instance that is gone is given to the next one that needs it.',
    file: 'src/deployments/ports.ts',
    from: 'sql.lit(quarantineMs)',
    to: 'sql.lit(-1)',
    also: {
      file: 'src/deployments/ports.ts',
      from: ".where('freed_version', '<=', await routers.leastInForce())",
      to: '',
    },
  },
  'signal-before-the-commit': {
    what: 'Signals are delivered while their transaction is still open.',
    file: 'src/signals/signals.ts',
    from: 'if (!scope) deliver(hubOf(db), batch);',
    to: 'deliver(hubOf(scope?.root ?? db), batch, scope);',
  },
  'drop-signals': {
    what: 'What was published in a transaction is dropped when it is committed.',
    file: 'src/signals/signals.ts',
    from: 'scope.onCommit.push(() => deliver(hubOf(scope.root), batch, scope));',
    to: '',
  },
  'resolve-without-event': {
    what: 'An alert is resolved without its event.',
    file: 'src/alerts/watcher.ts',
    from: 'await insertAlertEvents(tx, this.#parts, await markResolved(tx, this.#parts, { ids: [id] }));',
    to: 'await markResolved(tx, this.#parts, { ids: [id] });',
  },
  'count-twice': {
    what: 'Counts that are stored again are added to those that are there.',
    file: 'src/traffic/traffic-queries.ts',
    from: 'do update\n    set requests = excluded.requests,',
    to: 'do update\n    set requests = traffic.requests + excluded.requests,',
  },
  'remove-without-the-lease': {
    what: 'The row of an instance that ended is removed without the lease of its environment.',
    file: 'src/deployments/reconcile/refresh-instances.ts',
    from: `await lease.write(async (tx) => {
    await endInstance(`,
    to: `const bare = (lease as unknown as { bare?: EnvironmentLease['write'] }).bare ?? lease.write;
  await bare(async (tx) => {
    await endInstance(`,
    also: {
      file: 'src/deployments/reconcile/environment-leases.ts',
      from: 'return {\n      write: (work) =>',
      to: 'return {\n      ...{ bare: (work: never) => db.transaction().execute(work) },\n      write: (work) =>',
    },
  },
  'abort-for-ever': {
    what: 'An abort whose previous revision does not come back never ends.',
    file: 'src/deployments/rules/rollout.ts',
    from: "const to = rollout.cause === 'abort' ? 'canceled' : 'failed';\n  const isLate = nowMs >= rollout.deadlineAt;",
    to: "const to = rollout.cause === 'abort' ? 'canceled' : 'failed';\n  const isLate = nowMs < 0;",
    tests: ['src/deployments/rules/rollout.test.ts'],
  },
  'abort-into-nothing': {
    what: 'At its deadline an abort moves traffic to the previous revision, also if that has no instance.',
    file: 'src/deployments/rules/rollout.ts',
    from: 'if (isLate && rollout.hasPrevious && seen.previous.healthy === 0 && seen.target.healthy > 0) {',
    to: 'if (isLate && rollout.hasPrevious && seen.previous.healthy < 0) {',
    tests: ['src/deployments/rules/rollout.test.ts'],
  },
  'share-to-nobody': {
    what: 'All traffic moves back when an abort begins, whether or not the previous revision has an instance.',
    file: 'src/deployments/rules/desired.ts',
    from: 'if (previousHealthy === 0) return 100;',
    to: 'if (previousHealthy === 0) return 0;',
    tests: ['src/deployments/rules/desired.test.ts'],
  },
  'leave-the-bad-share': {
    what: 'A canary that is being aborted keeps its share.',
    file: 'src/deployments/rules/desired.ts',
    from: 'return { target: restored ? 0 : s.targetExisting, previous, targetPercent: shareWhileAborting(s, previous) };',
    to: 'return { target: restored ? 0 : s.targetExisting, previous, targetPercent: s.percent };',
    tests: ['src/deployments/rules/desired.test.ts'],
  },
  'take-requests-for-visitors': {
    what: 'A canary is judged as if every request were a visitor of its own.',
    file: 'src/deployments/rules/evidence.ts',
    from: 'return Math.max(1, (this.#ofCanary.squares() + this.#ofStable.squares()) / variance);',
    to: 'return 1;',
    tests: ['test/simulation/canary.test.ts'],
  },
  'compare-all-at-once': {
    what: 'Both sides of a canary are compared over all of the time, and not within the same ten seconds.',
    file: 'src/deployments/rules/evidence.ts',
    from: 'this.ratios = addRatios(this.ratios, ratiosOf(canary, stable));',
    to: 'this.ratios = ratiosOf(this.canary, this.stable);',
    tests: ['src/deployments/rules/analysis.test.ts'],
  },
  'limit-alone-decides': {
    what: 'A canary above the limit is undone although stable is above it, too.',
    file: 'src/deployments/rules/analysis.ts',
    from: 'stable.requests === 0 && isSpread ? logOddsAbove(canary, Math.max(brokenRate, policy.max_error_rate)) : null;',
    to: 'isSpread ? logOddsAbove(canary, policy.max_error_rate) : null;',
    tests: ['src/deployments/rules/analysis.test.ts'],
  },
  'blame-all-instances': {
    what: 'A canary is undone for the errors of one of its instances.',
    file: 'src/deployments/rules/analysis.ts',
    from: 'if (measured.without.size < 2) return null;',
    to: 'if (measured.without.size < 1000) return null;',
    tests: ['src/deployments/rules/rollout.test.ts'],
  },
  'remember-slow-starts': {
    what: 'A canary is undone for latency that has recovered.',
    file: 'src/deployments/rules/analysis.ts',
    from: '].slice(-recentWindows);',
    to: '];',
    tests: ['src/deployments/rules/analysis.test.ts'],
  },
  'forget-who-waits': {
    what: 'Requests without an answer say nothing about a canary.',
    file: 'src/deployments/rules/analysis.ts',
    from: 'waiting.slice(from).reduce((sum, one) => sum + one, 0);',
    to: 'waiting.slice(from).reduce((sum) => sum, 0);',
    tests: ['src/deployments/rules/analysis.test.ts'],
  },
  'ignore-idempotency-keys': {
    what: 'A request that is sent again is carried out again.',
    file: 'src/http/api/carry-out.ts',
    from: 'if (key === null) return commit(',
    to: 'if (key === null || key) return commit(',
  },
};

const project = resolve(import.meta.dirname, '..');

/** The files with the fault in them, by name. Throws where the code has changed so much that the fault does not fit any more. */
export function patched({ also, ...first }: DeliberateFault): Map<string, string> {
  const texts = new Map<string, string>();
  for (const { file, from, to } of also ? [first, also] : [first]) {
    const parts = (texts.get(file) ?? readFileSync(join(project, file), 'utf8')).split(from);
    if (parts.length !== 2) throw new Error(`${file} has “${from}” ${parts.length - 1} times, not once`);
    texts.set(file, parts.join(to));
  }
  return texts;
}

/** A copy of the code with the fault in it; `clean` removes it. */
function copyWithFault(fault: DeliberateFault): { folder: string; clean(): void } {
  const texts = patched(fault);
  const folder = mkdtempSync(join(tmpdir(), 'sluice-fault-'));
  for (const part of ['src', 'simulation', 'test/simulation', 'package.json']) {
    cpSync(join(project, part), join(folder, part), { recursive: true });
  }
  symlinkSync(join(project, 'node_modules'), join(folder, 'node_modules'));
  for (const [file, text] of texts) writeFileSync(join(folder, file), text);
  return { folder, clean: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Runs the tests that should know on a copy with the fault; true: one of them fails. */
export function testsFind(fault: DeliberateFault): boolean {
  const { folder, clean } = copyWithFault(fault);
  try {
    const { status } = spawnSync(process.execPath, ['--test', ...(fault.tests ?? [])], { cwd: folder });
    return status !== 0;
  } finally {
    clean();
  }
}

/** Runs the simulation on the copy until an invariant breaks. Gives its closing line. */
export function runWithFault(fault: DeliberateFault, seeds: string, steps: number): { found: boolean; output: string } {
  const { folder, clean } = copyWithFault(fault);
  try {
    const args = [join(folder, 'simulation/main.ts'), '--seeds', seeds, '--steps', String(steps), '--first'];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    return { found: status === 1 && stdout.includes('broken'), output: (stdout + stderr).trim() };
  } finally {
    clean();
  }
}

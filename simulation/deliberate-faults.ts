// So that the simulation can fail: faults that somebody could make in the code, each put into a copy of it. A fault whose
// `from` is not in the file exactly once is out of date, and says so.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

export interface DeliberateFault {
  /** What the code does wrong then. */
  what: string;
  file: string;
  from: string;
  to: string;
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
  },
  'lose-the-guard-on-shares': {
    what: 'Traffic moves for a deployment that has changed since it was read.',
    file: 'src/deployments/traffic-shares.ts',
    from: 'await lockDeployment(tx, deployment);',
    to: '',
  },
  'rest-shares-on-what-was': {
    what: 'Traffic moves to a revision for instances that are gone by then.',
    file: 'src/deployments/traffic-shares.ts',
    from: 'await lockHealthy(tx, instances);',
    to: '',
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
  'ignore-idempotency-keys': {
    what: 'A request that is sent again is carried out again.',
    file: 'src/http/api/carry-out.ts',
    from: 'if (key === null) return commit(',
    to: 'if (key === null || key) return commit(',
  },
};

const project = resolve(import.meta.dirname, '..');

/** The file with the fault in it. Throws where the code has changed so much that the fault does not fit any more. */
export function patched({ file, from, to }: DeliberateFault): string {
  const parts = readFileSync(join(project, file), 'utf8').split(from);
  if (parts.length !== 2) throw new Error(`${file} has “${from}” ${parts.length - 1} times, not once`);
  return parts.join(to);
}

/** A copy of the code with the fault in it; `clean` removes it. */
function copyWithFault(fault: DeliberateFault): { folder: string; clean(): void } {
  const text = patched(fault);
  const folder = mkdtempSync(join(tmpdir(), 'sluice-fault-'));
  for (const part of ['src', 'simulation', 'package.json']) {
    cpSync(join(project, part), join(folder, part), { recursive: true });
  }
  symlinkSync(join(project, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, fault.file), text);
  return { folder, clean: () => rmSync(folder, { recursive: true, force: true }) };
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

// One run of one seed: some steps with faults, then none until everything has calmed down.
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { migrate } from '../src/db/migrate.ts';
import { openDatabase } from '../src/db/open-database.ts';
import { EngineError } from '../src/engines/engine.ts';
import type { Log } from '../src/lib/log.ts';
import { accountId, tokenId } from './control-process.ts';
import { ConnectionLost } from './database.ts';
import type { FaultSwitches } from './faults.ts';
import { replaceGlobals } from './globals.ts';
import { Installation } from './installation.ts';
import type { Breach, Judge } from './judge.ts';
import type { Machine } from './world.ts';

export interface Options {
  seed: number;
  steps: number;
  switches: FaultSwitches;
}

export interface Result {
  seed: number;
  steps: number;
  /** Of virtual time. */
  seconds: number;
  /** Two runs of a seed have the same. */
  trace: string;
  breach: Breach | null;
  /** What happened last, if an invariant is broken. */
  recent: string[];
  counts: Record<string, number>;
  /** How often each state and transition was reached. */
  coverage: Record<string, number>;
}

/** What goes wrong. */
export const today: Pick<Options, 'switches'> = {
  switches: { clockJumpMs: 3600_000, routerClockJumpMs: 60_000 },
};

/** Longer than any deadline that a rollout here can wait for. */
const calmLimitMs = 40 * 60_000;

export interface Workplace {
  /** A database with all tables, to copy for every run. */
  template: string;
  folder: string;
  clean(): void;
}

export async function openWorkplace(): Promise<Workplace> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-simulation-'));
  const { db, dialect, close } = await openDatabase({ url: null, dataDir: folder, onConnectionLost: () => {} });
  await migrate(db, dialect);
  await db.insertInto('account').values({ id: accountId, name: 'simulation', created_at: 0 }).execute();
  await db
    .insertInto('token')
    .values({
      id: tokenId,
      account_id: accountId,
      kind: 'admin',
      name: 'simulation',
      hash: '0',
      scopes: '["*"]',
      bound: 0,
      expires_at: null,
      last_used_at: null,
      revoked_at: null,
      created_at: 0,
      version: 1,
    })
    .execute();
  await close();
  const template = join(folder, 'sluice.db');
  // The file alone has everything then.
  const file = new DatabaseSync(template);
  file.exec('pragma wal_checkpoint(truncate)');
  file.close();
  return {
    template,
    folder,
    clean: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export async function runSeed({ template, folder }: Workplace, { seed, steps, switches }: Options): Promise<Result> {
  const databasePath = join(folder, `run-${seed}.db`);
  copyFileSync(template, databasePath);
  const installation = new Installation({ seed, databasePath, switches }, listeningLog);
  const { world, judge, faults, client, database } = installation;
  const startedAt = world.now;
  const restore = replaceGlobals(world);
  const onRejection = (reason: unknown) =>
    world.current?.isDead || judge.complain('no rejection goes unheard', String((reason as Error)?.stack ?? reason));
  // Rejections of a process that dies in the middle of its code do not count; a test runner would count them.
  const others = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', onRejection);
  try {
    installation.start();
    while (world.steps < steps && judge.breach === null && (await world.step())) judge.afterStep();
    installation.calmDown();
    const calmBy = world.now + calmLimitMs;
    let calmSteps = 0;
    while (judge.breach === null && (await world.step())) {
      judge.afterStep();
      if (++calmSteps % 50 !== 0) continue;
      const unrest = judge.unrest();
      if (unrest === null) break;
      if (world.now > calmBy) judge.complain('everything calms down once nothing goes wrong any more', unrest);
    }
    judge.checkLedger();
  } finally {
    process.off('unhandledRejection', onRejection);
    for (const listener of others) process.on('unhandledRejection', listener);
    restore();
    database.close();
    for (const suffix of ['', '-wal', '-shm']) rmSync(databasePath + suffix, { force: true });
  }
  const { breach, facts, checks } = judge;
  return {
    seed,
    steps: world.steps,
    seconds: Math.round((world.now - startedAt) / 1000),
    trace: (world.trace >>> 0).toString(16).padStart(8, '0'),
    breach,
    coverage: judge.coverage.counts,
    recent: breach ? world.recent.slice(-200) : [],
    counts: {
      checks,
      crashes: installation.crashes,
      faults: faults.count,
      requests: client.requests,
      acknowledged: client.acknowledged,
      unanswered: client.unanswered,
      deployments: facts.deployment.length,
      ended: facts.deployment.filter(({ finished_at }) => finished_at !== null).length,
      succeeded: facts.deployment.filter(({ state }) => state === 'succeeded').length,
      events: facts.event.length,
      arrivals: installation.receivers.arrivals.length,
    },
  };
}

/** Errors that no fault explains are faults of the code. */
function listeningLog(machine: Machine, judge: Judge): Log {
  const onError = (fields: { err?: unknown }, text: string) => {
    if (machine.isDead || fields.err === undefined || isExplained(fields.err)) return;
    const { stack = String(fields.err) } = fields.err as Error;
    judge.complain('nothing fails that no fault explains', `${machine.name}: ${text}: ${stack}`);
  };
  const log = {
    level: 'silent',
    isLevelEnabled: () => false,
    trace() {},
    debug() {},
    info() {},
    warn: onError,
    error: onError,
    fatal: onError,
    child: () => log,
  };
  return log as unknown as Log;
}

/** Whether a fault that was injected explains this error. */
function isExplained(error: unknown): boolean {
  if (error instanceof ConnectionLost || error instanceof EngineError) return true;
  const { errcode, cause } = (error ?? {}) as { errcode?: number; cause?: unknown };
  return errcode === 13 || (cause !== undefined && isExplained(cause));
}

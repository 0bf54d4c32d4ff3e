// Replaces a running process by a new one of what is on disk now. The old one is told to end only when the new one is
// ready. Where two must not run at once (SQLite), the old one gives up the data directory first, while connections wait in
// the kernel, and takes it back if the new one fails.
import { type Child, ChildFailed } from './child.ts';
import type { Keeper } from './keeper.ts';
import type { ControlOrder } from './supervisor-protocol.ts';

/** Long enough to load every module on a busy machine; the old process serves meanwhile. */
const standbyWithinMs = 120_000;
/** A new version may have to change the database first. */
const readyWithinMs = 600_000;
/** The loops of the old process finish their step; after this it is killed. */
const releaseWithinMs = 60_000;

const order = (what: ControlOrder['order']): ControlOrder => ({ order: what });

interface ControlHandOver {
  keeper: Keeper;
  /** Starts a process that loads everything and waits. */
  startWaiting(): Child;
  /** Whether two processes may work on the database at once. */
  mayOverlap: boolean;
  drainMs: number;
  /** For an old process that starts again: it has closed its own. */
  apiSocket: object;
}

/** Rejects with ChildFailed if the new process does not become ready; the old one then goes on. */
export async function replaceControl(parts: ControlHandOver): Promise<void> {
  const { keeper } = parts;
  const old = keeper.current;
  if (old === null) return keeper.start().waitFor('ready', readyWithinMs);
  const next = parts.startWaiting();
  try {
    await next.waitFor('standby', standbyWithinMs);
    if (parts.mayOverlap) await becomeReady(next);
    else await takeTurns(parts, old, next);
  } catch (error) {
    next.kill('SIGKILL');
    throw error;
  }
  // The old one, or the one that was started because it ended meanwhile.
  const before = keeper.current ?? old;
  keeper.keep(next);
  before.send(order('retire'));
  void before.endWithin(parts.drainMs);
}

const becomeReady = (next: Child): Promise<void> => next.ask(order('start'), 'ready', readyWithinMs);

async function takeTurns({ keeper, apiSocket }: ControlHandOver, old: Child, next: Child): Promise<void> {
  if (keeper.current !== old) throw new ChildFailed(`${old.name} ended at the same time and was started again`);
  keeper.detach();
  await old.ask(order('release'), 'released', releaseWithinMs).catch(() => old.kill('SIGKILL'));
  try {
    await becomeReady(next);
  } catch (error) {
    next.kill('SIGKILL');
    await next.ended;
    await resumeOld(keeper, old, apiSocket);
    throw error;
  }
}

async function resumeOld(keeper: Keeper, old: Child, apiSocket: object): Promise<void> {
  try {
    await old.ask(order('resume'), 'resumed', readyWithinMs, apiSocket);
    keeper.keep(old);
  } catch {
    old.kill('SIGKILL');
    await old.ended;
    keeper.start();
  }
}

/** For processes of which several may run at once. */
export async function replaceBeside(keeper: Keeper, start: () => Child, drainMs: number): Promise<void> {
  const next = start();
  try {
    await next.waitFor('ready', readyWithinMs);
  } catch (error) {
    next.kill('SIGKILL');
    throw error;
  }
  const old = keeper.current;
  keeper.keep(next);
  old?.kill('SIGTERM');
  void old?.endWithin(drainMs);
}

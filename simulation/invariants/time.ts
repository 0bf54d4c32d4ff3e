import type { Facts } from '../facts.ts';
import { firstOf } from './commit.ts';

/** A sweep every ten seconds, every second while routers are waited for, and the time that the sweep itself takes. */
const sweptWithinMs = 17_000;

interface Sweeper {
  calmSince: number;
}

/**
 * Every control process sweeps, so one that works is enough. `upSince`: when the last engine came back; `leaseMs`: of the
 * routers, which are waited for.
 */
export function findOldOrphan(
  orphanSince: ReadonlyMap<string, number>,
  sweepers: readonly Sweeper[],
  upSince: number,
  leaseMs: number,
  nowMs: number,
): string | null {
  const worksSince = Math.max(upSince, Math.min(...sweepers.map(({ calmSince }) => calmSince)));
  return firstOf(orphanSince, ([id, since]) => {
    const ms = nowMs - Math.max(since, worksSince);
    return ms > sweptWithinMs + leaseMs ? `${id} has run without a row for ${Math.round(ms)} ms` : null;
  });
}

/** The lease of another process runs out after 20 s, and the search finds the deployment within a second. */
const noticedWithinMs = 30_000;

/** `deadlines`: by deployment; `calmSince`: when a fault last touched any control process. */
export function findLateRollout(
  { deployment }: Facts,
  deadlines: ReadonlyMap<string, number>,
  calmSince: number,
  nowMs: number,
): string | null {
  return firstOf(deployment, ({ id, state, finished_at }) => {
    const deadline = deadlines.get(id);
    if (finished_at !== null || deadline === undefined) return null;
    const lateMs = nowMs - Math.max(deadline, calmSince);
    return lateMs > noticedWithinMs ? `${id} is ${state}, ${Math.round(lateMs)} ms after its deadline` : null;
  });
}

import type { Quotas } from '../accounts/quotas.ts';
import type { Db } from '../db/database.ts';
import type { DialectName } from '../db/dialect.ts';
import type { RetentionClock } from '../db/retention-clock.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import type { Loops } from '../lib/loops.ts';
import type { Seal } from '../lib/seal.ts';

/** What nearly every part of the service needs. */
export interface Common {
  db: Db;
  dialect: DialectName;
  seal: Seal;
  ids: IdSource;
  clock: Clock;
  /** What is deleted for its age is old by this. */
  retention: RetentionClock;
  log: Log;
  loops: Loops;
  /** What each account may have. */
  quotas: Quotas;
  /** Unlike that of any other process. */
  processId: string;
}

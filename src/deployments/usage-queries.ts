// What instances used, in the database. CPU is stored as it is counted, from the start of the instance on: how much was
// used in between is for the reader to subtract, and a measurement that is missing or there twice does no harm.

import { CompiledQuery, sql } from 'kysely';
import { type Db, dialectOf } from '../db/database.ts';
import { deleteInSlices } from '../db/delete-slice.ts';
import { postgresRows, sqliteRows } from '../db/prepared.ts';
import type { Tables } from '../db/tables.ts';
import type { EnvironmentKey } from '../environments/environment-key.ts';

/** How long measurements are kept. */
export const usageKeptForMs = 24 * 3_600_000;

const fields = {
  project_id: 'text',
  environment: 'text',
  revision: 'bigint',
  instance_id: 'text',
  at: 'bigint',
  memory_bytes: 'bigint',
  cpu_ms: 'bigint',
} as const;

const columns = Object.keys(fields).join(', ');
const inserting = (rows: string) =>
  `insert into instance_usage (${columns}) select ${columns} from ${rows} where true on conflict do nothing`;
const statements = { sqlite: inserting(sqliteRows(fields)), postgres: inserting(postgresRows('$1', fields)) };

export type UsageRow = Tables['instance_usage'];

export async function insertUsage(db: Db, rows: UsageRow[]): Promise<void> {
  if (rows.length === 0) return;
  await db.executeQuery(CompiledQuery.raw(statements[dialectOf(db)], [JSON.stringify(rows)]));
}

export async function deleteUsageBefore(db: Db, ms: number): Promise<void> {
  await deleteInSlices(db, 'instance_usage', sql`at < ${ms}`);
}

/** CPU as it was counted at some time. */
interface CpuCount {
  at: number;
  cpuMs: number;
}

/** The most memory, and the first and last count of CPU, of one instance in one step. */
export interface UsageStep {
  instance: string;
  revision: number;
  /** Counted from `originMs`. */
  step: number;
  memoryBytes: number;
  first: CpuCount;
  last: CpuCount;
}

/** `fromMs` is not before `originMs`. */
export async function listUsageSteps(
  db: Db,
  { projectId, environment }: EnvironmentKey,
  { originMs, stepMs }: { originMs: number; stepMs: number },
  fromMs: number,
  toMs: number,
): Promise<UsageStep[]> {
  const rows = await db
    .selectFrom('instance_usage')
    .select((e) => [
      'instance_id',
      'revision',
      sql<number>`cast((at - ${originMs}) / ${stepMs} as bigint)`.as('step'),
      e.fn.max('memory_bytes').as('memory'),
      e.fn.min('at').as('first_at'),
      e.fn.min('cpu_ms').as('first_cpu'),
      e.fn.max('at').as('last_at'),
      e.fn.max('cpu_ms').as('last_cpu'),
    ])
    .where('project_id', '=', projectId)
    .where('environment', '=', environment)
    .where('at', '>=', fromMs)
    .where('at', '<', toMs)
    .groupBy(['instance_id', 'revision', 'step'])
    .execute();
  return rows.map((row) => ({
    instance: row.instance_id,
    revision: row.revision,
    step: Number(row.step),
    memoryBytes: Number(row.memory),
    first: { at: Number(row.first_at), cpuMs: Number(row.first_cpu) },
    last: { at: Number(row.last_at), cpuMs: Number(row.last_cpu) },
  }));
}

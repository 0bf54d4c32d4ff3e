// Stores the counts of the rate limit. On SQLite there is one process, which keeps them in memory. On PostgreSQL all
// processes share one row per key and cell; a single statement grants as many requests as the limit still allows, so that
// together they admit exactly the limit. Requests that arrive during a statement of the same key share the next one.
import type { Db } from '../../db/database.ts';
import { capOf, cellOf, type Usage } from './rate-limit.ts';

interface Taken extends Usage {
  admitted: boolean;
}

/** What a request is counted under, and how many of them a minute there may be. */
export interface Charge {
  key: string;
  limit: number;
}

export interface RateCells {
  /** Counts a request under each of them. */
  take(charges: Charge[], nowMs: number): Promise<Taken[]> | Taken[];
  /** What was admitted, without a request. */
  read(key: string, nowMs: number): Promise<Usage>;
  /** Deletes cells that no longer count. */
  sweep(nowMs: number): Promise<void>;
}

interface Cell extends Usage {
  cell: number;
}

export function memoryRateCells(): RateCells {
  const cells = new Map<string, Cell>();
  return {
    take: (charges, nowMs) =>
      charges.map(({ key, limit }) => {
        const used = currentCell(cells, key, cellOf(nowMs));
        const admitted = used.current < capOf(limit, used.previous, nowMs);
        if (admitted) used.current++;
        return { admitted, previous: used.previous, current: used.current };
      }),
    read: async (key, nowMs) => currentCell(cells, key, cellOf(nowMs)),
    async sweep(nowMs) {
      for (const [key, { cell }] of cells) if (cell < cellOf(nowMs) - 1) cells.delete(key);
    },
  };
}

function currentCell(cells: Map<string, Cell>, key: string, cell: number): Cell {
  const known = cells.get(key);
  if (known?.cell === cell) return known;
  const fresh = { cell, previous: known?.cell === cell - 1 ? known.current : 0, current: 0 };
  cells.set(key, fresh);
  return fresh;
}

interface QueuedRequest {
  nowMs: number;
  resolve: (taken: Taken) => void;
  reject: (error: unknown) => void;
}

export function databaseRateCells(db: Db): RateCells {
  const queues = new Map<string, QueuedRequest[]>();
  const previousOf = new Map<string, { cell: number; count: number }>();

  /** It no longer changes, so one read per key and cell is enough. */
  async function previousCount(key: string, cell: number): Promise<number> {
    const known = previousOf.get(key);
    if (known?.cell === cell) return known.count;
    const count = await findCount(db, key, cell - 1);
    previousOf.set(key, { cell, count });
    return count;
  }

  async function drain(key: string, queue: QueuedRequest[], limit: number): Promise<void> {
    while (queue.length > 0) {
      const group = queue.splice(0);
      const { nowMs } = group.at(-1)!;
      const cell = cellOf(nowMs);
      try {
        const previous = await previousCount(key, cell);
        const cap = Math.max(0, capOf(limit, previous, nowMs));
        settle(group, previous, await grant(db, key, cell, group.length, cap));
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    queues.delete(key);
  }

  const takeOne = ({ key, limit }: Charge, nowMs: number) =>
    new Promise<Taken>((resolve, reject) => {
      const queued = { nowMs, resolve, reject };
      const queue = queues.get(key);
      if (queue) {
        queue.push(queued);
      } else {
        const fresh = [queued];
        queues.set(key, fresh);
        void drain(key, fresh, limit);
      }
    });

  return {
    take: (charges, nowMs) => Promise.all(charges.map((charge) => takeOne(charge, nowMs))),
    async read(key, nowMs) {
      const cell = cellOf(nowMs);
      return { previous: await findCount(db, key, cell - 1), current: await findCount(db, key, cell) };
    },
    async sweep(nowMs) {
      const cell = cellOf(nowMs);
      for (const [key, known] of previousOf) if (known.cell < cell) previousOf.delete(key);
      await db
        .deleteFrom('rate_cell')
        .where('cell', '<', cell - 1)
        .execute();
    },
  };
}

/** Admits the first `granted` requests of the group. */
function settle(
  group: QueuedRequest[],
  previous: number,
  { count, granted }: { count: number; granted: number },
): void {
  for (const [index, { resolve }] of group.entries()) {
    const admitted = index < granted;
    resolve({ admitted, previous, current: admitted ? count - granted + index + 1 : count });
  }
}

async function findCount(db: Db, key: string, cell: number): Promise<number> {
  const row = await db
    .selectFrom('rate_cell')
    .select('count')
    .where('key', '=', key)
    .where('cell', '=', cell)
    .executeTakeFirst();
  return Number(row?.count ?? 0);
}

/** Counts as many of the requested ones as fit below the cap. */
function grant(db: Db, key: string, cell: number, requested: number, cap: number) {
  const first = Math.min(requested, cap);
  return db
    .insertInto('rate_cell')
    .values({ key, cell, count: first, granted: first })
    .onConflict((conflict) =>
      conflict.columns(['key', 'cell']).doUpdateSet((e) => {
        const room = e(e.val(cap), '-', e.ref('rate_cell.count'));
        const some = e.case().when(room, '>=', requested).then(requested).when(room, '<', 0).then(0).else(room).end();
        return { granted: some, count: e('rate_cell.count', '+', some) };
      }),
    )
    .returning(['count', 'granted'])
    .executeTakeFirstOrThrow();
}

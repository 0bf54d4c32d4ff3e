// Where the counts of the rate limit live. One process on SQLite keeps them in memory. On PostgreSQL all processes share
// one row per key and cell: a single statement grants what still fits, so that together they admit exactly the limit.
// Requests of one key that arrive while its statement is under way share the next one.
import type { Db } from '../../db/database.ts';
import { capOf, cellMs, cellOf, type Usage } from './rate-limit.ts';

export interface Taken extends Usage {
  admitted: boolean;
}

export interface RateCells {
  take(key: string, limit: number, nowMs: number): Promise<Taken> | Taken;
  /** Forgets cells that no longer count. */
  sweep(nowMs: number): Promise<void>;
}

interface Cell extends Usage {
  cell: number;
}

export function memoryRateCells(): RateCells {
  const cells = new Map<string, Cell>();
  return {
    take(key, limit, nowMs) {
      const used = currentCell(cells, key, cellOf(nowMs));
      const admitted = used.current < capOf(limit, used.previous, nowMs);
      if (admitted) used.current++;
      return { admitted, previous: used.previous, current: used.current };
    },
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

interface Waiting {
  nowMs: number;
  resolve: (taken: Taken) => void;
  reject: (error: unknown) => void;
}

export function databaseRateCells(db: Db): RateCells {
  const queues = new Map<string, Waiting[]>();
  const previousOf = new Map<string, { cell: number; count: number }>();

  async function previous(key: string, cell: number): Promise<number> {
    const known = previousOf.get(key);
    if (known?.cell === cell) return known.count;
    const row = await db
      .selectFrom('rate_cell')
      .select('count')
      .where('key', '=', key)
      .where('cell', '=', cell - 1)
      .executeTakeFirst();
    const count = row?.count ?? 0;
    previousOf.set(key, { cell, count });
    return count;
  }

  async function grant(key: string, want: number, limit: number, nowMs: number) {
    const cell = cellOf(nowMs);
    const before = await previous(key, cell);
    const cap = Math.max(0, capOf(limit, before, nowMs));
    const fits = Math.min(want, cap);
    const row = await db
      .insertInto('rate_cell')
      .values({ key, cell, count: fits, granted: fits })
      .onConflict((conflict) =>
        conflict.columns(['key', 'cell']).doUpdateSet((e) => {
          const room = e(e.val(cap), '-', e.ref('rate_cell.count'));
          const granted = e.case().when(room, '>=', want).then(want).when(room, '<', 0).then(0).else(room).end();
          return { granted, count: e('rate_cell.count', '+', granted) };
        }),
      )
      .returning(['count', 'granted'])
      .executeTakeFirstOrThrow();
    return { previous: before, count: row.count, granted: row.granted };
  }

  async function drain(key: string, queue: Waiting[], limit: number): Promise<void> {
    while (queue.length > 0) {
      const group = queue.splice(0);
      try {
        const { previous, count, granted } = await grant(key, group.length, limit, group.at(-1)!.nowMs);
        group.forEach(({ resolve }, index) => {
          const admitted = index < granted;
          resolve({ admitted, previous, current: admitted ? count - granted + index + 1 : count });
        });
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    queues.delete(key);
  }

  return {
    take(key, limit, nowMs) {
      return new Promise((resolve, reject) => {
        const waiting = { nowMs, resolve, reject };
        const queue = queues.get(key);
        if (queue) {
          queue.push(waiting);
        } else {
          const fresh = [waiting];
          queues.set(key, fresh);
          void drain(key, fresh, limit);
        }
      });
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

export const sweepEveryMs = cellMs;

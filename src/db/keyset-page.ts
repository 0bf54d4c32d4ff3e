// Keyset pages: a page starts right below the last key of the previous one, so deep pages cost no more than the first.
import type { SelectQueryBuilder } from 'kysely';
import type { Tables } from './tables.ts';

export interface Page {
  limit: number;
  /** Key of the last item of the previous page. */
  after: string | null;
}

/** Selects one row more than the page holds, which shows whether another page follows. `key` is a unique column. */
export function newestFirst<T extends keyof Tables, Row>(
  query: SelectQueryBuilder<Tables, T, Row>,
  { limit, after }: Page,
  key: 'id' | 'number' = 'id',
): SelectQueryBuilder<Tables, T, Row> {
  const column = key as never;
  const last = (key === 'number' ? Number(after) : after) as never;
  const below = after === null ? query : query.where(column, '<', last);
  return below.orderBy(column, 'desc').limit(limit + 1);
}

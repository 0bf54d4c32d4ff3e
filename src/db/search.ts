// Search in lists that are sorted by id, newest first: every word has to be somewhere in the texts that are shown. No index
// finds a word within a text, so a request looks at a bounded number of rows. Where it has not filled its page by then, the
// page says that more follows, and the next one goes on where this one ended.
import { type Expression, type SelectQueryBuilder, type SqlBool, sql } from 'kysely';
import { newestFirst, type Page } from './keyset-page.ts';
import type { Tables } from './tables.ts';

/** How many rows a request looks at. */
export const searchedRows = 5000;

const maxWords = 10;

export const wordsOf = (search: string | undefined): string[] =>
  (search ?? '').toLowerCase().split(/\s+/).filter(Boolean).slice(0, maxWords);

/** `%` and `_` stand for themselves. */
export const containsWord = (text: Expression<unknown>, word: string): Expression<SqlBool> =>
  sql<SqlBool>`lower(${text}) like ${`%${word.replaceAll(/[\\%_]/g, '\\$&')}%`} escape '\\'`;

/** One condition for each word: it is in one of the texts. */
export const matching = (words: readonly string[], texts: readonly Expression<unknown>[]): Expression<SqlBool>[] =>
  words.map(
    (word) =>
      sql<SqlBool>`(${sql.join(
        texts.map((text) => containsWord(text, word)),
        sql` or `,
      )})`,
  );

export interface Found<Row> {
  rows: Row[];
  /** The id down to which was searched, where more rows are below it. */
  searchedTo: string | null;
}

/** `query` has no order and no limit of its own; its other conditions are kept. */
export async function searchNewestFirst<T extends keyof Tables, Row>(
  query: SelectQueryBuilder<Tables, T, Row>,
  search: string | undefined,
  texts: readonly Expression<unknown>[],
  page: Page,
): Promise<Found<Row>> {
  const words = wordsOf(search);
  if (words.length === 0) return { rows: await newestFirst(query, page).execute(), searchedTo: null };
  const ids = query.clearSelect().select('id' as never) as SelectQueryBuilder<Tables, T, { id: string }>;
  const last = await newestFirst(ids, { limit: 0, after: page.after })
    .offset(searchedRows - 1)
    .executeTakeFirst();
  const searchedTo = (last as { id: string } | undefined)?.id ?? null;
  let found = searchedTo === null ? query : query.where('id' as never, '>=', searchedTo as never);
  for (const condition of matching(words, texts)) found = found.where(condition);
  return { rows: await newestFirst(found, page).execute(), searchedTo };
}

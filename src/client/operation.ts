// What a method of the client is before the client is built: a kind, a path and a type. And what those that list return.

export type Kind =
  | 'list'
  | 'get'
  | 'find'
  | 'create'
  | 'post'
  | 'command'
  | 'update'
  | 'delete'
  | 'deleteWith'
  | 'stream';

/** A method of the client: its kind, its path and its type. */
export interface Operation<F> {
  kind: Kind;
  path: string;
  /** Never set; carries the type of the method. */
  method?: F;
}

export const operation = <F>(kind: Kind, path: string): Operation<F> => ({ kind, path });

export interface Page<T> {
  data: T[];
  page: { next: string | null; has_more: boolean };
}

type ReadPage<T> = (query: { limit?: number; cursor?: string }) => Promise<Page<T>>;

const iterationLimit = 100;

/** A list: `for await` yields every item, newest first; `page()` fetches one page. Nothing is fetched before that. */
export class Listing<T> implements AsyncIterable<T> {
  readonly #read: ReadPage<T>;
  readonly #query: { limit?: number; cursor?: string };

  constructor(read: ReadPage<T>, query: { limit?: number; cursor?: string }) {
    this.#read = read;
    this.#query = query;
  }

  /** The page after `cursor`; without one, the first page of the query. */
  page(cursor?: string | null): Promise<Page<T>> {
    return this.#read({ ...this.#query, ...(cursor != null && { cursor }) });
  }

  /** Yields one page after another, with the query's `limit` or else the largest allowed. */
  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    let query = { ...this.#query, limit: this.#query.limit ?? iterationLimit };
    for (;;) {
      const page = await this.#read(query);
      yield page;
      if (page.page.next === null) return;
      query = { ...query, cursor: page.page.next };
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const { data } of this.pages()) yield* data;
  }
}

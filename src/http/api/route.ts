// What a handler is given and what it gives back. A handler of GET reads; any other one changes, inside a transaction
// that also takes the audit row and the remembered answer: they commit together or not at all.
import type { Readable } from 'node:stream';
import type { Caller } from '../../contract/caller.ts';
import type { BodyOf, ParamsOf, QueryOf, ResponseOf, RouteDeclaration } from '../../contract/route.ts';
import type { Db } from '../../db/database.ts';
import type { Page } from '../../db/page.ts';
import type { Log } from '../../lib/log.ts';

export interface ApiCall<R extends RouteDeclaration = RouteDeclaration> {
  params: ParamsOf<R>;
  query: QueryOf<R>;
  body: BodyOf<R>;
  caller: Caller;
  requestId: string;
  address: string;
  log: Log;
  page: Page;
  /** Makes a page of rows, of which one more than the page's limit was read. */
  paginate<Row, Item>(
    rows: Row[],
    keyOf: (row: Row) => string,
    present: (row: Row) => Item,
  ): { data: Item[]; page: { next: string | null; has_more: boolean } };
  /** Throws 412 where the request has an If-Match that is not this version. */
  expectVersion(version: number): void;
}

export interface Answer<T> {
  body: T;
  /** Becomes the ETag. */
  version?: number;
  /** Path below /v1 of what was created. */
  location?: string;
  /** Where the path does not tell it: the project a created thing belongs to, for the audit log. */
  projectId?: string;
}

export interface ServedRoute {
  declaration: RouteDeclaration;
  handle(call: ApiCall, db: Db): Promise<Answer<unknown>>;
  /** Before the transaction begins: what takes its time and needs no database. */
  prepare?(call: ApiCall): Promise<void>;
  /** In place of an answer: what is sent for as long as the other side listens. */
  follow?(call: ApiCall, db: Db, header: (name: string) => string | undefined): Promise<Readable>;
}

export function serve<R extends RouteDeclaration>(
  declaration: R,
  handle: (call: ApiCall<R>, db: Db) => Promise<Answer<ResponseOf<R>>>,
  prepare?: (call: ApiCall<R>) => Promise<void>,
): ServedRoute {
  const served: ServedRoute = { declaration, handle: handle as ServedRoute['handle'] };
  return prepare ? { ...served, prepare: prepare as ServedRoute['prepare'] } : served;
}

export function serveStream<R extends RouteDeclaration>(
  declaration: R,
  follow: (call: ApiCall<R>, db: Db, header: (name: string) => string | undefined) => Promise<Readable>,
): ServedRoute {
  const handle = () => Promise.reject(new Error('a stream has no answer'));
  return { declaration, handle, follow: follow as ServedRoute['follow'] };
}

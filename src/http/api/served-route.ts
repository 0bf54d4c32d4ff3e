// What a handler gets and returns. The handler of a GET reads. Any other handler runs in a transaction that also writes the
// audit row and the stored response: they commit together or not at all.
import type { Readable } from 'node:stream';
import type { BodyOf, ParamsOf, QueryOf, ResponseOf, RouteDeclaration } from '../../contract/declare.ts';
import type { Caller } from '../../contract/scopes.ts';
import type { Db } from '../../db/database.ts';
import type { Page } from '../../db/keyset-page.ts';
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
  /**
   * Makes a page of rows. The caller reads one row more than the limit, which shows whether another page follows. One also
   * follows where a search ended before the page was full: at `searchedTo`, where it goes on.
   */
  paginate<Row, Item>(
    rows: Row[],
    keyOf: (row: Row) => string,
    present: (row: Row) => Item,
    searchedTo?: string | null,
  ): { data: Item[]; page: { next: string | null; has_more: boolean } };
  /** Throws 412 if the request has an If-Match that does not match this version. */
  expectVersion(version: number): void;
}

export interface Answer<T> {
  body: T;
  /** Becomes the ETag. */
  version?: number;
  /** The handler of a GET returns this same object again until something changes, so its response is made once. */
  isRepeated?: boolean;
  /** Path below /v1 of what was created. */
  location?: string;
  /** For the audit log: the project that the resource belongs to, if the path does not contain it. */
  projectId?: string;
  /** For the audit log: the resource as it was before, in the shape of `body`. Without it, what was created is recorded. */
  before?: unknown;
  /** For the audit log: fields that changed and whose values are never shown. */
  changedSecrets?: string[];
  /** For the audit log: paths below /v1 of what else was changed in the same way. */
  alsoChanged?: string[];
}

export interface ServedRoute {
  declaration: RouteDeclaration;
  handle(call: ApiCall, db: Db): Promise<Answer<unknown>>;
  /** Runs before the transaction: for slow steps, such as network calls, that must not hold it open. */
  prepare?(call: ApiCall): Promise<void>;
  /** For a request that would be too much for one transaction. */
  split?: Split;
  /** Instead of handle: returns a stream that is sent until the client disconnects. */
  follow?(call: ApiCall, db: Db, header: (name: string) => string | undefined): Promise<Readable>;
}

/**
 * The parts of a request that are carried out one after another, each in a transaction of its own. A request whose later
 * part fails is repeated by its sender, so carrying out a part again has to change nothing.
 */
export interface Split<R extends RouteDeclaration = RouteDeclaration> {
  /** Refuses the whole request, before any part of it, where it can be known that one would fail. */
  partsOf(call: ApiCall<R>, db: Db): Promise<ApiCall<R>[]>;
  merge(answers: Answer<ResponseOf<R>>[]): Answer<ResponseOf<R>>;
}

export function serveInParts<R extends RouteDeclaration>(
  declaration: R,
  handle: (call: ApiCall<R>, db: Db) => Promise<Answer<ResponseOf<R>>>,
  split: Split<R>,
): ServedRoute {
  return { ...serve(declaration, handle), split: split as unknown as Split };
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
  const handle = () => Promise.reject(new Error('a stream has no single response'));
  return { declaration, handle, follow: follow as ServedRoute['follow'] };
}

// What a handler is given and what it gives back. A handler of GET reads; any other one changes, inside a transaction
// that also takes the audit row and the remembered answer: they commit together or not at all.
import type { Readable } from 'node:stream';
import type { BodyOf, ParamsOf, QueryOf, ResponseOf, RouteDeclaration } from '../../contract/route.ts';
import type { Scope } from '../../contract/scopes.ts';
import type { Db } from '../../db/database.ts';
import type { Log } from '../../lib/log.ts';

/** Who asks: the token of the request. */
export interface Caller {
  tokenId: string;
  accountId: string;
  scopes: ReadonlySet<Scope>;
  /** null: every project of the account. */
  projectIds: readonly string[] | null;
}

export interface Page {
  limit: number;
  /** Key of the last item of the page before. */
  after: string | null;
}

export interface Ask<R extends RouteDeclaration = RouteDeclaration> {
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
  /** Runs once the change is committed; not at all if it is not. */
  afterCommit(then: () => void): void;
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
  handle(ask: Ask, db: Db): Promise<Answer<unknown>>;
  /** Before the transaction begins: what takes its time and needs no database. */
  prepare?(ask: Ask): Promise<void>;
  /** In place of an answer: what is sent for as long as the other side listens. */
  follow?(ask: Ask, db: Db, header: (name: string) => string | undefined): Promise<Readable>;
}

export function serve<R extends RouteDeclaration>(
  declaration: R,
  handle: (ask: Ask<R>, db: Db) => Promise<Answer<ResponseOf<R>>>,
  prepare?: (ask: Ask<R>) => Promise<void>,
): ServedRoute {
  const served: ServedRoute = { declaration, handle: handle as ServedRoute['handle'] };
  return prepare ? { ...served, prepare: prepare as ServedRoute['prepare'] } : served;
}

export function serveStream<R extends RouteDeclaration>(
  declaration: R,
  follow: (ask: Ask<R>, db: Db, header: (name: string) => string | undefined) => Promise<Readable>,
): ServedRoute {
  const handle = () => Promise.reject(new Error('a stream has no answer'));
  return { declaration, handle, follow: follow as ServedRoute['follow'] };
}

/** Thrown by a guarded update that found the row changed since it was read: the transaction runs again. */
export class ChangedMeanwhile extends Error {}

const isoTimes = new Map<number, string>();

/** The same few times are shown again and again, and writing one out takes longer than finding it. */
export function isoTime(ms: number): string {
  let text = isoTimes.get(ms);
  if (text === undefined) {
    if (isoTimes.size >= 5000) isoTimes.clear();
    text = new Date(ms).toISOString();
    isoTimes.set(ms, text);
  }
  return text;
}

export const isoTimeOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));

// The usual kinds of routes. What all lists, all GETs of one resource and all DELETEs have in common is declared here.
import type { TObject, TSchema } from 'typebox';
import type { ErrorCode } from '../errors.ts';
import { declare, type RouteDeclaration } from './route.ts';
import { Page, pageQuery, Shape } from './shapes.ts';

/** Takes nothing. */
export const none = Shape({});

type Said<P extends TObject> = Pick<RouteDeclaration<P>, 'name' | 'path' | 'tag' | 'summary' | 'scope'> & {
  params: P;
  errors?: readonly ErrorCode[];
};

type Filters = Record<string, TSchema>;

/** A list may have pages of its own size. */
const limitOf = ({ limit }: Filters): number => (limit as { maximum?: number } | undefined)?.maximum ?? 100;

/** A page of a list; takes `filters` in addition to limit and cursor. */
export const declareList = <P extends TObject, I extends TSchema, const F extends Filters = Record<never, TSchema>>({
  item,
  filters = {} as F,
  errors = [],
  ...said
}: Said<P> & { item: I; filters?: F }) =>
  declare({
    ...said,
    method: 'GET',
    query: Shape({ ...pageQuery, ...filters }),
    body: undefined,
    status: 200,
    response: Page(item, limitOf(filters)),
    errors: [...errors, 'invalid_cursor'],
  });

/** One resource, with its ETag if it can be changed. */
export const declareGet = <P extends TObject, R extends TSchema>(
  said: Said<P> & { response: R; versioned?: boolean },
) => declare({ errors: [], ...said, method: 'GET', query: none, body: undefined, status: 200 });

/** A POST that creates something. */
export const declareCreate = <P extends TObject, B extends TObject, R extends TSchema>(
  said: Said<P> & { body: B; bodyOptional?: boolean; response: R; versioned?: boolean },
) => declare({ errors: [], ...said, method: 'POST', query: none, status: 201 });

export const declareUpdate = <P extends TObject, B extends TObject, R extends TSchema>(
  said: Said<P> & { body: B; response: R },
) => declare({ errors: [], ...said, method: 'PATCH', query: none, status: 200, versioned: true });

export const declareDelete = <P extends TObject>(said: Said<P>) =>
  declare({
    errors: [],
    ...said,
    method: 'DELETE',
    query: none,
    body: undefined,
    status: 204,
    response: undefined,
    versioned: true,
  });

/** A POST without a body: a command on an existing resource. */
export const declareCommand = <P extends TObject, R extends TSchema>(
  said: Said<P> & { response: R; status?: 200 | 202; versioned?: boolean },
) => declare({ errors: [], status: 200, ...said, method: 'POST', query: none, body: undefined });

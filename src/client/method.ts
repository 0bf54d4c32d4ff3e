// Turns a declared route into a method of the client: its path parameters one by one, then its body or query, then
// options. At run time a method is a kind and a path; its type is derived from the declaration.
import type { BodyOf, ParamsOf, QueryOf, ResponseOf, RouteDeclaration } from '../contract/declare.ts';
import { type Listing, operation } from './operation.ts';
import type { CallOptions, StreamOptions } from './request.ts';

type IsUnion<T, U = T> = T extends unknown ? ([U] extends [T] ? false : true) : never;

/** One string for each path parameter. */
type Ids<D extends RouteDeclaration> = [keyof ParamsOf<D>] extends [never]
  ? []
  : IsUnion<keyof ParamsOf<D>> extends false
    ? [id: string]
    : 'r' extends keyof ParamsOf<D>
      ? [projectId: string, name: string, revision: string]
      : [parentId: string, id: string];

type ItemOf<D extends RouteDeclaration> = ResponseOf<D> extends { data: (infer T)[]; page: unknown } ? T : never;

export const list = <D extends RouteDeclaration, Item = ItemOf<D>>(path: string) =>
  operation<(...args: [...Ids<D>, query?: QueryOf<D>, options?: CallOptions]) => Listing<Item>>('list', path);

export const get = <D extends RouteDeclaration, Answer = ResponseOf<D>>(path: string) =>
  operation<(...args: [...Ids<D>, options?: CallOptions]) => Promise<Answer>>('get', path);

/** A GET that takes a query and does not return a list. */
export const find = <D extends RouteDeclaration>(path: string) =>
  operation<(...args: [...Ids<D>, query?: QueryOf<D>, options?: CallOptions]) => Promise<ResponseOf<D>>>('find', path);

/** A stream of server-sent events that each carry an item. */
export const follow = <D extends RouteDeclaration, Item>(path: string) =>
  operation<(...args: [...Ids<D>, query?: QueryOf<D>, options?: StreamOptions]) => AsyncIterable<Item>>('stream', path);

/** A POST with a body, which is optional if none of its fields is required. */
export const create = <D extends RouteDeclaration>(path: string) =>
  operation<
    (
      ...args: Record<string, never> extends BodyOf<D>
        ? [...Ids<D>, body?: BodyOf<D>, options?: CallOptions]
        : [...Ids<D>, body: BodyOf<D>, options?: CallOptions]
    ) => Promise<ResponseOf<D>>
  >('create', path);

/** A POST with a body and a query. */
export const post = <D extends RouteDeclaration>(path: string) =>
  operation<
    (...args: [...Ids<D>, body: BodyOf<D>, query?: QueryOf<D>, options?: CallOptions]) => Promise<ResponseOf<D>>
  >('post', path);

/** A POST without a body. */
export const command = <D extends RouteDeclaration>(path: string) =>
  operation<(...args: [...Ids<D>, options?: CallOptions]) => Promise<ResponseOf<D>>>('command', path);

export const update = <D extends RouteDeclaration>(path: string) =>
  operation<(...args: [...Ids<D>, body: BodyOf<D>, options?: CallOptions]) => Promise<ResponseOf<D>>>('update', path);

export const remove = <D extends RouteDeclaration>(path: string) =>
  operation<(...args: [...Ids<D>, options?: CallOptions]) => Promise<void>>('delete', path);

/** A DELETE that takes a query. */
export const removeWith = <D extends RouteDeclaration>(path: string) =>
  operation<(...args: [...Ids<D>, query?: QueryOf<D>, options?: CallOptions]) => Promise<void>>('deleteWith', path);

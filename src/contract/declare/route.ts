// A route is one declaration: its name, who may call it, its parameters, its response and its errors. The server,
// validation, the OpenAPI document and the docs all use it.
import type { Static, TObject, TSchema } from 'typebox';
import type { ErrorCode } from '../errors.ts';
import type { Scope } from '../scopes.ts';

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

export interface RouteDeclaration<
  P extends TObject = TObject,
  Q extends TObject = TObject,
  B extends TObject | undefined = TObject | undefined,
  R extends TSchema | undefined = TSchema | undefined,
> {
  /** OpenAPI's operationId, and the action in the audit log. */
  name: string;
  method: Method;
  /** Below /v1, with `{name}` for a parameter. */
  path: string;
  tag: Tag;
  summary: string;
  /** Null for any valid token; 'public' if no token is needed. */
  scope: Scope | null | 'public';
  params: P;
  query: Q;
  body: B;
  /** A request without a body counts as one with `{}`. */
  bodyOptional?: boolean;
  status: 200 | 201 | 202 | 204;
  response: R;
  /** Media type of the response if it is not JSON. */
  media?: 'text/event-stream';
  /** The response has an ETag; PATCH and DELETE of that resource respect If-Match. */
  versioned?: boolean;
  /** In addition to those of every route. */
  errors: readonly ErrorCode[];
}

export const tagCatalogue = {
  projects: 'Projects and their environments.',
  deployments: 'A deployment turns an image into a revision and moves traffic to it, at once or step by step.',
  alerts: 'Metrics, alert rules, and the alerts that fired.',
  domains: 'Custom domains and their certificates.',
  webhooks: 'Webhook endpoints and their deliveries.',
  events: 'Events, as a list and as a stream.',
  tokens: 'Bearer tokens and what they may do.',
  service: 'The service itself: regions, audit log, this document.',
} as const;

type Tag = keyof typeof tagCatalogue;

export type ParamsOf<R extends RouteDeclaration> = Static<R['params']>;
export type QueryOf<R extends RouteDeclaration> = Static<R['query']>;
export type BodyOf<R extends RouteDeclaration> = R['body'] extends TObject ? Static<R['body']> : undefined;
export type ResponseOf<R extends RouteDeclaration> = R['response'] extends TSchema ? Static<R['response']> : undefined;

export function declare<
  P extends TObject,
  Q extends TObject,
  B extends TObject | undefined,
  R extends TSchema | undefined,
>(declaration: RouteDeclaration<P, Q, B, R>): RouteDeclaration<P, Q, B, R> {
  return declaration;
}

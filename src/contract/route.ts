// A route is one declaration: what it is called, who may call it, what it takes, gives and may fail with. Serving,
// validating, the OpenAPI document and the docs all read it.
import type { Static, TObject, TSchema } from 'typebox';
import type { ErrorCode } from './errors.ts';
import type { Scope } from './scopes.ts';

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
  /** null: any valid token; 'public': no token needed. */
  scope: Scope | null | 'public';
  params: P;
  query: Q;
  body: B;
  /** A request without a body is the same as one with `{}`. */
  bodyOptional?: boolean;
  status: 200 | 201 | 202 | 204;
  response: R;
  /** Of the answer, where it is not JSON. */
  media?: 'text/event-stream';
  /** The answer carries an ETag; PATCH and DELETE of that resource heed If-Match. */
  versioned?: boolean;
  /** Beyond those every route may answer with. */
  errors: readonly ErrorCode[];
}

export const tagCatalogue = {
  projects: 'What is deployed, and where to: a project has environments.',
  deployments: 'An image becomes a revision, and the revision gets traffic: at once, or by and by.',
  alerts: 'What is measured, what counts as bad, and when it was.',
  domains: 'Names of one’s own, with certificates.',
  webhooks: 'Who is told of events, and how that went.',
  events: 'What happened.',
  tokens: 'Bearer tokens and what they may do.',
  service: 'The service itself: regions, audit log, this document.',
} as const;

export type Tag = keyof typeof tagCatalogue;

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

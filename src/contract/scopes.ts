// What a token may do, and the caller that a request's token stands for.

/** What a token may do. `:write` does not include `:read`; `*` is everything. */
export const scopeCatalogue = {
  'projects:read': 'See projects, environments, regions and registry logins.',
  'projects:write': 'Create, change and delete projects, environments and registry logins.',
  'deployments:read': 'See deployments, revisions and logs.',
  'deployments:write': 'Deploy, promote, pause, abort and roll back.',
  'domains:read': 'See domains and their certificates.',
  'domains:write': 'Add, verify, renew and remove domains.',
  'alerts:read': 'See alert rules, alerts and metrics.',
  'alerts:write': 'Create, change and delete alert rules.',
  'webhooks:read': 'See webhooks and their deliveries.',
  'webhooks:write': 'Create, change, test, replay and delete webhooks. Subscribing to events also needs `events:read`.',
  'tokens:read': 'See tokens, never their secrets.',
  'tokens:write': 'Create and revoke tokens with no more rights than this one.',
  'events:read': 'See events and follow their stream.',
  'audit:read': 'See the audit log.',
  '*': 'Everything, including what later versions add.',
} as const;

export type Scope = keyof typeof scopeCatalogue;

export const scopes = Object.keys(scopeCatalogue) as Scope[];

export function allows(held: ReadonlySet<Scope>, needed: Scope): boolean {
  return held.has('*') || held.has(needed);
}

/** The token that makes a request. */
export interface Caller {
  tokenId: string;
  accountId: string;
  scopes: ReadonlySet<Scope>;
  /** null: every project of the account. */
  projectIds: readonly string[] | null;
  /** The session of the console that makes the request for that token. */
  sessionId?: string;
}

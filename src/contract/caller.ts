import type { Scope } from './scopes.ts';

/** The token that makes a request. */
export interface Caller {
  tokenId: string;
  accountId: string;
  scopes: ReadonlySet<Scope>;
  /** null: every project of the account. */
  projectIds: readonly string[] | null;
}

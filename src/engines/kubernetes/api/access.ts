// How a cluster's API is reached, wherever that was read from.

export interface ClusterAccess {
  /** `https://host:port`, perhaps with a path. */
  server: string;
  /** Certificates that the server's is checked by, as PEM; null: those of the system. */
  ca: string | null;
  /** The name in the server's certificate, where it is another than its host. */
  serverName: string | null;
  client: { cert: string; key: string } | null;
  /** null: the client certificate is enough. */
  token: TokenSource | null;
  /** The namespace that this account is at home in. */
  namespace: string | null;
}

/** Gives the token as it is now; `anew`: the last one was refused. */
export type TokenSource = (anew: boolean) => Promise<string>;

/** The access is described wrongly, or in a form that is not accepted. */
export class AccessError extends Error {}

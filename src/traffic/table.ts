// The routing table: which host goes to which revisions, in which shares, over which instances.

export interface Target {
  instance: string;
  host: string;
  port: number;
}

export interface Share {
  revision: number;
  /** Of 100; all shares of a route add up to 100. */
  percent: number;
  targets: Target[];
}

export interface Route {
  project: string;
  environment: string;
  /** Stable first, canary second; a visitor is moved from the first to the second only. */
  shares: Share[];
}

/** By host name, lower case, without port. */
export type RoutingTable = ReadonlyMap<string, Route>;

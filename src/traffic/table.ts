// The routing table: which host goes to which revisions, in which shares, over which instances.

export interface Target {
  instance: string;
  host: string;
  port: number;
}

export interface Share {
  revision: number;
  /** The shares of a route add up to 100. */
  percent: number;
  targets: Target[];
}

export interface Route {
  project: string;
  environment: string;
  /** Stable first, canary second; visitors move from the first to the second only. */
  shares: Share[];
  /** The hosts have a certificate, so plain HTTP requests may be redirected to HTTPS. */
  secure?: boolean;
}

/** By host name, lower case, without port. Hosts of one environment share one Route. */
export type RoutingTable = ReadonlyMap<string, Route>;

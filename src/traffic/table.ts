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
  /** There is a certificate for the hosts that lead here: visitors without TLS may be sent to the address with it. */
  secure?: boolean;
}

/** By host name, lower case, without port. Hosts of one environment share one Route. */
export type RoutingTable = ReadonlyMap<string, Route>;

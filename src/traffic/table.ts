// The routing table: which host goes to which revisions, in which shares, over which instances. It is kept, sent and
// changed by environment, so that a change costs what it changes.

export interface Target {
  instance: string;
  host: string;
  port: number;
}

export interface Share {
  revision: number;
  /** The shares of an environment add up to 100. */
  percent: number;
  targets: Target[];
}

export interface Host {
  /** Lower case, without port. */
  name: string;
  /** It has a certificate, so plain HTTP requests may be redirected to HTTPS. */
  secure: boolean;
}

/** What an environment has in the table. Without hosts it has nothing there. */
export interface EnvironmentRoutes {
  project: string;
  environment: string;
  hosts: Host[];
  /** Stable first, canary second; visitors move from the first to the second only. */
  shares: Share[];
}

/** Unique among environments, for maps. */
export const routesKey = ({ project, environment }: Pick<EnvironmentRoutes, 'project' | 'environment'>): string =>
  `${project} ${environment}`;

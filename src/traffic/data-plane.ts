// A data plane carries visitors' requests to instances. It consists of routers: one in this process, some worker
// processes beside it, or a proxy of its own. The agent hands it the routing table, once whole and then by environment,
// learns which version each router has in force, and takes what they measured. It does not know how requests travel.
import type { Measurement } from './measurements.ts';

/** A router that is connected and responds. */
export interface RouterState {
  /** Of one run of the router: another run has another id. */
  id: string;
  /** The version of the table that every new request follows. */
  version: number;
}

export interface RouterObserver {
  /**
   * A router is about to follow the table. It gets no table, and so accepts no requests, before this resolves; and the table
   * that it gets then is read after it: what was taken out of the table before that did not wait for this router.
   */
  joining(router: RouterState): Promise<void>;
  /** Changes the table to what it is now. To be awaited where a router that joined gets a table that was read before. */
  catchUp(): Promise<void>;
  /** A router has another version in force. */
  moved(): void;
  /** The router has ended for certain; one that is only out of contact has not. */
  left(id: string): void;
}

/** What one router counted: absolute numbers per bucket, which only rise. Storing them twice is harmless. */
export interface MeasuredBatch {
  /** The id of the router. */
  router: string;
  measurements: Measurement[];
  /** To be called once. What was not stored is given again, with newer numbers where there are any. */
  settle(stored: boolean): void;
}

export interface RouterPorts {
  http: number;
  /** null: there is no listener for TLS. */
  tls: number | null;
}

export interface DataPlane {
  /** To be called before anything else. */
  observe(observer: RouterObserver): void;
  /**
   * Replaces the table by what the batches hold, environment by environment, and drops the others at the end. Where the
   * iteration fails, environments that came before it are replaced, no others are dropped, and this rejects.
   */
  load(version: number, batches: AsyncIterable<EnvironmentRoutes[]>): Promise<void>;
  /** Replaces what these environments have in the table. Requests under way finish at the instances they have. */
  change(version: number, environments: EnvironmentRoutes[]): void;
  /** Accepts requests, once a table is loaded. */
  listen(): Promise<RouterPorts>;
  /** The routers that respond, with what they have in force now. */
  routers(): RouterState[];
  /** Takes some of what was measured and not stored yet; nothing is left once this gives no batch. */
  takeMeasurements(): MeasuredBatch[];
  /** Certificates of these names have changed; null: any may have. */
  expireCertificates(names: string[] | null): void;
  /** 48 bytes that encrypt TLS session tickets. All routers use the same, so that a session resumes at any of them. */
  setTicketKey(key: Buffer): void;
  /** Resolves when what ends with this process has ended: requests under way first, or cut off after `drainMs`. */
  stop(drainMs: number): Promise<void>;
}

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

/**
 * What an environment has in the routing table: which hosts lead to which revisions, in which shares, over which
 * instances. The table is kept, sent and changed by environment, so that a change costs what it changes. An
 * environment without hosts has nothing in it.
 */
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

export interface StoredCertificate {
  /** Another certificate of the same name has another id. */
  id: string;
  chainPem: string;
  keyPem: string;
}

/** Where routers get certificates, and the responses to challenges, from. */
export interface CertificateSource {
  /**
   * The current certificate of a host name, in lower case; null: there is none; `current`: it is the one with the id
   * `known`. Rejects where that cannot be said at the moment.
   */
  find(hostname: string, known: string | null): Promise<StoredCertificate | 'current' | null>;
  /** The response to an http-01 challenge of a certificate authority; null: there is no such challenge. */
  answerChallenge(hostname: string, token: string): Promise<string | null>;
}

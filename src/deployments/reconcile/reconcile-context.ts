// What a reconcile pass works with, and what it has observed of its environment.
import type { Quotas } from '../../accounts/quotas.ts';
import type { Db } from '../../db/database.ts';
import type { Engine, EngineInstance } from '../../engines/engine.ts';
import type { EnvironmentKey } from '../../environments/environment-key.ts';
import type { EnvironmentRow } from '../../environments/environment-queries.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IdSource } from '../../lib/ids.ts';
import type { Log } from '../../lib/log.ts';
import type { Seal } from '../../lib/seal.ts';
import type { LoggedInstance } from '../../logs/store/segments.ts';
import type { Regions } from '../../regions/regions.ts';
import type { RegistryLogins } from '../../registries/registry-logins.ts';
import type { RouterWatch } from '../../traffic/router-watch.ts';
import type { DeploymentRow, RevisionRow } from '../deployment-queries.ts';
import type { InstanceRow, InstanceSetRow } from '../instance-queries.ts';
import type { PortRange } from '../ports.ts';
import type { Crashes } from '../rules/crashes.ts';
import type { EngineCalls, TakeLogs } from './engine-calls.ts';
import type { EngineLists } from './engine-lists.ts';
import type { EnvironmentLease } from './environment-leases.ts';
import type { HealthWatch } from './health-checks.ts';
import type { ImagePulls } from './image-pulls.ts';

/**
 * The parts that the steps of a pass are given, and what this process remembers from one pass to the next. A function
 * that needs two or three of them takes those instead.
 */
export interface ReconcileContext {
  /** To read from. Everything is written through the lease. */
  db: Db;
  lease: EnvironmentLease;
  clock: Clock;
  /** For deadlines, and for how long an instance has been in its state. */
  deadlineClock: Clock;
  ids: IdSource;
  log: Log;
  seal: Seal;
  regions: Regions;
  logins: RegistryLogins;
  /** How long pulling an image may take in all. */
  pullTimeoutS: number;
  instancePorts: PortRange;
  /** How many ports an account may have; without it, any number. */
  quotas?: Quotas;
  /** Knows when no router sends requests to an instance any more. */
  routers: RouterWatch;
  /** Collects what an instance prints, from its start on. */
  followLogs?(instance: LoggedInstance, engine: Engine): void;
  takeLogs?: TakeLogs;
  engineLists: EngineLists;
  engineCalls: EngineCalls;
  health: HealthWatch;
  images: ImagePulls;
  crashes: Crashes;
}

export interface Observation {
  key: EnvironmentKey;
  environment: EnvironmentRow;
  active: RevisionRow | null;
  /** The deployment in progress, and its target revision. */
  rollout: { deployment: DeploymentRow; target: RevisionRow } | null;
  /** As the engine and the health checks report them now; as last known if the region does not answer. */
  instances: InstanceRow[];
  /** Those that its engine has, or may have. */
  sets: InstanceSetRow[];
  /** null: the region does not answer. */
  region: ObservedRegion | null;
  /** Instances with a call to the engine under way when the rows were read. */
  busy: ReadonlySet<string>;
}

/** An environment whose region answers. */
export type Reachable = Observation & { region: ObservedRegion };

export interface ObservedRegion {
  name: string;
  engine: Engine;
  /** What the engine runs, by id. */
  running: ReadonlyMap<string, EngineInstance>;
}

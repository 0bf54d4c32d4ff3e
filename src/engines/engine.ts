// An engine runs sets of instances. The rest of the service sees only this interface, and one conformance suite
// (test/engines/conformance.ts) checks what callers may rely on. Every method is idempotent, so that it can be called
// again after a crash. Engines that run single instances, as Docker does, become engines of sets by `runSets`.
import type { FailureCode } from '../contract/deployments.ts';
import type { HealthCheck } from '../contract/environments.ts';
import type { EndReason } from '../contract/instances.ts';
import type { LogPosition } from '../lib/log-position.ts';

type EngineKind = 'standin' | 'docker' | 'kubernetes';

/** The revision that an instance belongs to. Stored in the engine as labels, so that it is known after a crash. */
interface InstanceLabels {
  project: string;
  environment: string;
  revision: number;
}

/** What an instance may use. */
export interface Resources {
  /** MiB. */
  memory_mb: number;
  cpus: number;
}

/** What the instances of one revision in one environment are made of. Nothing of it changes but which instances it has. */
export interface InstanceSet extends InstanceLabels {
  /** Chosen by the caller; keeping the same id twice gives one set. */
  id: string;
  /** As the deployment names it, `registry/name:tag`. */
  image: string;
  /** Of the image that runs, as returned by prepare(). */
  digest: string;
  /** The port on which the program listens; passed to it as PORT. */
  port: number;
  variables: Record<string, string>;
  resources: Resources;
  /** For engines that check it themselves. */
  healthCheck?: HealthCheck;
  /** Seconds between the request to end and the end, for engines that end it themselves. */
  drainS?: number;
  /** For the registry of the image, should it have to be pulled again; without one: as anyone may. */
  login?: RegistryAuth | null;
}

/** An instance that a set should have. */
export interface Member {
  /** Chosen by the caller; keeping the same id twice gives one instance. */
  id: string;
  /** Where it is to be reached on the host of `publishesOn` that runs it; null: the engine chooses. */
  hostPort: number | null;
}

/** The login of a registry. */
export interface RegistryAuth {
  username: string;
  password: string;
  /** Replaces the password if the registry issued one. */
  identitytoken?: string;
  /** The registry. */
  server: string;
}

/** How an image may be got. */
export interface ImageAccess {
  login: RegistryAuth | null;
  /**
   * The environment has run this very image before: if the engine still has it, no registry is asked. Otherwise the
   * registry decides, even if the engine has the image: it may be another tenant's.
   */
  isKnown: boolean;
  /** An image of that name that the engine has is used as it is, and its digest is a `localDigest`. */
  mayBeLocal?: boolean;
}

/** `created`: not started yet; `keep` starts it. */
export type InstanceState = 'created' | 'running' | 'exited';

/** How the engine says that an instance ended. */
export interface EngineEnd {
  /** By the engine's clock; null: it does not say. */
  at: number | null;
  reason: Exclude<EndReason, 'not_found'>;
  /** The limit that one that ran out of memory had, in MiB; null: not known. */
  memoryLimitMb: number | null;
}

/** What a program that runs listens on. */
export interface ListeningPorts {
  /** From anywhere. */
  open: number[];
  /** From inside the instance alone: on a loopback address. */
  loopback: number[];
}

/** An image that was pulled. */
export interface PreparedImage {
  /** `sha256:…`, or a `localDigest`. */
  digest: string;
  /** The TCP ports that it declares (EXPOSE), where the engine can tell. */
  exposed?: number[];
}

/** Why an instance does not run, and what to do about it. */
export interface EngineFailure {
  code: FailureCode;
  message: string;
}

export interface EngineInstance extends InstanceLabels {
  id: string;
  state: InstanceState;
  /** Where this machine reaches the instance; null if it cannot, for example once it has ended. */
  address: { host: string; port: number } | null;
  /** Of the program; null while it runs, and if the engine does not know it. */
  exitCode: number | null;
  /** How it ended, where the engine can tell; none while it runs. */
  ended?: EngineEnd;
  /** The machine that it runs on. */
  node?: string;
  /** Whether it passes its health check, where the engine itself checks it. */
  ready?: boolean;
  /** Why it does not run, where the engine can tell; it may still start, unless it has ended. */
  failure?: EngineFailure;
  /** The host that runs it does not answer: this is how it was last seen. */
  hostAway?: true;
  /** It ended because the engine itself did (a restart of the engine or its host), not by itself. */
  endedWithEngine?: true;
}

/** What an instance uses. */
export interface InstanceUsage {
  memoryBytes: number;
  /** The time that it has computed since it started. */
  cpuMs: number;
}

export interface LogLine {
  /** Milliseconds since the epoch. */
  at: number;
  stream: 'stdout' | 'stderr';
  text: string;
}

interface LogQuery {
  /** How many of the latest lines to return at most. */
  tail: number;
  /** Only lines after this time. */
  sinceMs?: number;
  /** Of those, the latest that fit, `defaultLogBytes` if it is left out. No more than about this is held in memory. */
  maxBytes?: number;
}

export const defaultLogBytes = 4 * 1024 * 1024;

export type EngineFault =
  | 'image_not_found'
  | 'image_denied'
  /** There is no way to the registry: no such name, connections refused, no valid certificate. */
  | 'registry_unreachable'
  /** The registry answers with errors, or too slowly; this and the next may pass. */
  | 'registry_failing'
  | 'registry_rate_limited'
  | 'unavailable'
  /** Something else has the port that the instance was to be reached at. */
  | 'port_taken'
  | 'start_failed';

export class EngineError extends Error {
  readonly fault: EngineFault;
  /** What to say of a deployment that fails for it, where the engine knows better than its fault. */
  readonly failure: EngineFailure | undefined;

  constructor(fault: EngineFault, message: string, cause?: unknown, failure?: EngineFailure) {
    super(message, { cause });
    this.fault = fault;
    this.failure = failure;
  }
}

/** Where an image was asked for that an engine has, and this one can have none: the same error, and what to do. */
export function needsRegistry(error: unknown, why: string): unknown {
  if (!(error instanceof EngineError) || error.fault === 'unavailable') return error;
  return new EngineError(error.fault, `${error.message.replace(/\.$/, '')}; ${why}`, error, error.failure);
}

/** Where an instance ended by itself; null: the engine was away, anything may have changed. */
export type EngineChange = Pick<InstanceLabels, 'project' | 'environment'> | null;

/** What a removal of images has freed. */
export interface RemovedImages {
  images: number;
  bytes: number;
}

/** One of several machines of an engine. */
interface EngineHost {
  name: string;
  available: boolean;
}

export interface Engine {
  readonly kind: EngineKind;
  /** It ends with its instances and remembers none of them: one that it does not list ended together with it. */
  readonly isForgetful?: true;
  /**
   * The hosts whose ports its instances are given by the caller, each one that is free on all of them: it is not known
   * yet which of them will run it. Null: they have addresses of their own.
   */
  readonly publishesOn: readonly string[] | null;
  /** Rejects with the reason if the engine does not answer the calls below in time. */
  probe(): Promise<void>;
  /** Pulls the image. */
  prepare(image: string, variables: Record<string, string>, access?: ImageAccess): Promise<PreparedImage>;
  /**
   * Makes the set, and starts those of the members that it does not have; others that it has are left as they are. Gives one
   * promise for each member, in their order: it has been started, or why it cannot be. Without members it does nothing.
   */
  keep(set: InstanceSet, members: readonly Member[]): Promise<void>[];
  /** Every instance of this installation that has not been removed, running or ended. */
  list(): Promise<EngineInstance[]>;
  /**
   * Asks the instance to end, kills it after the grace period, and removes it. Does nothing if there is none.
   * `beforeRemoval` runs when it has ended and its log can still be read.
   */
  stop(id: string, graceS: number, beforeRemoval?: () => Promise<void>): Promise<void>;
  /** Removes a set with all that is left of it, at once. Does nothing if there is none. */
  drop(setId: string): Promise<void>;
  /** The ids of the sets that it has, with instances or without; where there are only instances, it is left out. */
  sets?(): Promise<string[]>;
  /** Oldest first; empty if there is no such instance. */
  logs(id: string, query: LogQuery): Promise<LogLine[]>;
  /**
   * What the instance prints, from behind a position on (null: from the beginning), as lines of lib/log-lines.ts, each once
   * and in order. Reads no faster than it is asked to; where lines behind the position were lost, one says so. Ends when
   * the instance has ended and all of it was read, or there is none. A buffer is the caller's until it asks for the next.
   */
  follow?(id: string, after: LogPosition | null, signal: AbortSignal): AsyncIterable<Buffer>;
  /** What the program of an instance listens on, and what its image exposes; null where that cannot be told. */
  listening?(id: string): Promise<(ListeningPorts & { exposed: number[] }) | null>;
  /**
   * What these instances use, by id, where the engine measures it. Those that it cannot say in time, or does not run, are
   * left out.
   */
  usage?(ids: string[]): Promise<Map<string, InstanceUsage>>;
  /** Reports changes as they happen, where the engine does; returns what ends it. Nothing may rely on it alone. */
  watch?(onChange: (change: EngineChange) => void): () => void;
  /**
   * Removes images that it pulled, that are none of `kept` (digests or ids), that no container uses, and that nothing has
   * needed for `idleMs`. Where its disk is nearly full, and with `isUrgent`, at once.
   */
  removeImages?(kept: ReadonlySet<string>, idleMs: number, isUrgent: boolean): Promise<RemovedImages>;
  /** The images that this service pulled and that are still there. */
  countImages?(): Promise<RemovedImages>;
  /** Its machines, where it is made of several. */
  hosts?(): EngineHost[];
  close(): Promise<void>;
}

/** An instance, and what it is made of. */
export interface InstanceSpec extends Omit<InstanceSet, 'id'>, Member {}

/** An engine that knows single instances only. */
export interface InstanceEngine extends Omit<Engine, 'keep' | 'drop' | 'sets'> {
  /** Does nothing where it was started before, even if it has ended since. */
  start(spec: InstanceSpec): Promise<void>;
}

/** A set is what was started for it. */
export function runSets({ start, ...engine }: InstanceEngine): Engine {
  return {
    ...engine,
    keep: (set, members) => members.map((member) => start({ ...set, ...member })),
    // It is gone with the last of its instances.
    async drop() {},
  };
}

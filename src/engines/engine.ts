// What runs instances. Everything above the engines sees this interface only, and one conformance suite
// (test/engine-conformance.ts) says what each of its methods may be relied on for. Every method may be called again
// after a crash: what is done already stays done.

export type EngineKind = 'standin' | 'docker' | 'kubernetes';

/** Whose instance it is. Kept as labels where the engine keeps instances, so that they are found again after a crash. */
export interface InstanceLabels {
  project: string;
  environment: string;
  revision: number;
}

export interface InstanceSpec extends InstanceLabels {
  /** Chosen by the caller; starting the same id twice is one instance. */
  id: string;
  /** As asked for, `registry/name:tag`. */
  image: string;
  /** As resolved by prepare(); what really runs. */
  digest: string;
  /** Where the program inside listens; also given to it as PORT. */
  port: number;
  variables: Record<string, string>;
}

export type InstanceState = 'running' | 'exited';

export interface EngineInstance extends InstanceLabels {
  id: string;
  state: InstanceState;
  /** Where it can be reached from this machine, while it runs. */
  address: { host: string; port: number } | null;
  /** Of the program, once it ended. */
  exitCode: number | null;
}

export interface LogLine {
  /** Milliseconds since the epoch. */
  at: number;
  stream: 'stdout' | 'stderr';
  text: string;
}

export interface LogQuery {
  /** At most this many of the latest lines. */
  tail: number;
  /** Only lines after this time. */
  sinceMs?: number;
}

export type EngineFault = 'image_not_found' | 'image_denied' | 'unavailable' | 'start_failed';

export class EngineError extends Error {
  readonly fault: EngineFault;

  constructor(fault: EngineFault, message: string, cause?: unknown) {
    super(message, { cause });
    this.fault = fault;
  }
}

export interface Engine {
  readonly kind: EngineKind;
  /** Resolves while the engine answers, rejects with the reason while it does not. */
  probe(): Promise<void>;
  /** Makes the image ready to start and says which one it is: `sha256:…`. */
  prepare(image: string, variables: Record<string, string>): Promise<{ digest: string }>;
  start(spec: InstanceSpec): Promise<void>;
  /** Every instance of this installation, running or ended and not yet removed. */
  list(): Promise<EngineInstance[]>;
  /** Asks it to end, ends it after the grace, removes it. Of one that is not there: nothing. */
  stop(id: string, graceS: number): Promise<void>;
  /** Oldest first. Of one that is not there: none. */
  logs(id: string, query: LogQuery): Promise<LogLine[]>;
  close(): Promise<void>;
}

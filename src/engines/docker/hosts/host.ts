// One of the Docker hosts of a region: whether it answers, and what it ran when it was last asked. It is asked again and
// again, so that one that went away or hangs is known to be away before anybody waits for it.
import { EngineError } from '../../engine.ts';
import type { DatedInstance, DockerEngine } from '../docker.ts';

const checkEveryMs = 1000;

export const isUnavailable = (error: unknown): error is EngineError =>
  error instanceof EngineError && error.fault === 'unavailable';

/** Nothing was sent to the host. */
export class NotAsked extends EngineError {}

/** The host went away before it answered: it may have done what it was asked to, or do it yet. */
export class AnswerLost extends EngineError {}

/** What a host runs. */
export interface HostListing {
  host: Host;
  /** It said so just now; otherwise this is what it said last. */
  isCurrent: boolean;
  /** null: it has not answered yet. */
  found: DatedInstance[] | null;
}

export class Host {
  readonly name: string;
  readonly engine: DockerEngine;
  /** By performance.now(); null: it answers. */
  awaySince: number | null = performance.now();
  /** When it last did not answer. */
  failedAt = 0;
  /** When it was asked for what #seen says. */
  seenAt = 0;
  /** Why it is away. */
  reason = 'it has not been asked yet';
  readonly #onVerdict: (host: Host) => void;
  readonly #asking = new Set<(error: EngineError) => void>();
  #seen: DatedInstance[] | null = null;
  #listing: Promise<DatedInstance[]> | null = null;
  #checking: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;
  #gone = new AbortController();

  /** `onVerdict`: called when it goes away and when it is back. */
  constructor(name: string, engine: DockerEngine, onVerdict: (host: Host) => void) {
    this.name = name;
    this.engine = engine;
    this.#onVerdict = onVerdict;
  }

  get isAway(): boolean {
    return this.awaySince !== null;
  }

  /** It has been away for so long that what it ran counts as gone. */
  get isGivenUp(): boolean {
    return this.#gone.signal.aborted;
  }

  /** Aborted when it is given up. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  giveUp(): void {
    this.#gone.abort();
  }

  /** Asks whether it answers, and goes on asking. */
  check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = null;
      if (!this.#isClosed) this.#timer = setTimeout(() => void this.check(), checkEveryMs).unref();
    });
    return this.#checking;
  }

  async #check(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    try {
      await this.engine.probe();
      this.#answers();
    } catch (error) {
      this.#goesAway((error as Error).message);
    }
  }

  #answers(): void {
    if (!this.isAway || this.#isClosed) return;
    this.awaySince = null;
    if (this.isGivenUp) this.#gone = new AbortController();
    this.#onVerdict(this);
  }

  #goesAway(reason: string): void {
    this.reason = reason;
    this.failedAt = performance.now();
    if (this.isAway || this.#isClosed) return;
    this.awaySince = performance.now();
    for (const reject of this.#asking) reject(new AnswerLost('unavailable', this.#awayText()));
    this.#onVerdict(this);
  }

  /** Fails at once where the host is away, and as soon as it is known to have gone away. */
  async ask<T>(call: (engine: DockerEngine) => Promise<T>): Promise<T> {
    if (this.isAway) throw new NotAsked('unavailable', this.#awayText());
    const away = Promise.withResolvers<never>();
    this.#asking.add(away.reject);
    try {
      return await Promise.race([call(this.engine), away.promise]);
    } catch (error) {
      if (isUnavailable(error)) void this.check();
      throw error;
    } finally {
      this.#asking.delete(away.reject);
    }
  }

  async listInstances(): Promise<HostListing> {
    try {
      this.#listing ??= this.ask(() => this.#list()).finally(() => {
        this.#listing = null;
      });
      return { host: this, isCurrent: true, found: await this.#listing };
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      return { host: this, isCurrent: false, found: this.isGivenUp ? [] : this.#seen };
    }
  }

  /** As listInstances(), but asks anew: what was done before this call is seen. */
  async listAgain(): Promise<HostListing> {
    await this.#listing?.catch(() => {});
    return this.listInstances();
  }

  async #list(): Promise<DatedInstance[]> {
    const askedAt = performance.now();
    const found = await this.engine.listDated();
    if (askedAt >= this.seenAt) {
      this.#seen = found;
      this.seenAt = askedAt;
    }
    return found;
  }

  /** Whether it had the instance when it was last asked. */
  had(id: string): boolean {
    return !this.isGivenUp && (this.#seen?.some(({ instance }) => instance.id === id) ?? false);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer) clearTimeout(this.#timer);
    await this.engine.close();
  }

  #awayText(): string {
    return `the host ${this.name} is away: ${this.reason}`;
  }
}

// The Docker hosts of a region together: what all of them run, and when one of them is given up.
import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../../../lib/log.ts';
import { EngineError, type EngineInstance } from '../../engine.ts';
import type { DockerEngine } from '../docker.ts';
import { Host, type HostListing, NotAsked } from './host.ts';
import { type Copy, copyThatCounts } from './placement.ts';

/** How long a call waits for a host that is away to be back or given up. */
const decidedWithinMs = 5000;
const askEveryMs = 100;
/** A host is given up only where it did not answer just now: this process may have been paused. */
const justNowMs = 5000;

export interface HostSetOptions {
  engines: { name: string; engine: DockerEngine }[];
  /** How long a host may be away before what it runs counts as gone. */
  graceMs: number;
  /** Called when a host is back and when one was given up. */
  onChange(): void;
  log: Log | undefined;
}

export interface Found extends Copy {
  host: Host;
  instance: EngineInstance;
}

export class HostSet {
  readonly all: readonly Host[];
  /** Every host has been asked once, whether it answers and what it runs. */
  readonly isReady: Promise<unknown>;
  readonly #options: HostSetOptions;
  readonly #removing = new Set<string>();
  /** Since when at least one host answers: while none does, it is rather this process that is cut off. */
  #someAnswerSince: number | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(options: HostSetOptions) {
    this.#options = options;
    this.all = options.engines.map(({ name, engine }) => new Host(name, engine, (host) => this.#onVerdict(host)));
    const asked = this.all.map((host) => host.check().then(() => host.listInstances()));
    this.isReady = Promise.all(asked).then(() => this.#review());
  }

  answering(): Host[] {
    return this.all.filter((host) => !host.isAway);
  }

  /** By id: what the hosts run, where one is away and not given up as it was last seen. Fails if none answers. */
  async instances(): Promise<Map<string, Found>> {
    const copies = await this.copies();
    const counting = new Map<string, Found>();
    for (const [id, all] of copies) {
      const counts = copyThatCounts(all);
      counting.set(id, counts);
      if (all.length > 1) this.#removeOthers(counts, all);
    }
    return counting;
  }

  /** As instances(), with all that have the same id. */
  async copies(): Promise<Map<string, Found[]>> {
    await this.isReady;
    const listings = await Promise.all(this.all.map((host) => host.listInstances()));
    if (!listings.some(({ isCurrent }) => isCurrent)) throw this.noneAnswers();
    const byId = new Map<string, Found[]>();
    for (const found of listings.flatMap(foundIn)) {
      const { id } = found.instance;
      byId.set(id, [...(byId.get(id) ?? []), found]);
    }
    return byId;
  }

  /** The host that had the instance when it was last asked. */
  hostOf(id: string): Host | undefined {
    return this.all.find((host) => host.had(id));
  }

  noneAnswers(): EngineError {
    return new EngineError('unavailable', `no host answers: ${this.all.map((host) => host.reason).join('; ')}`);
  }

  /** Waits until a host that is away is back or given up, for some seconds, and then fails. */
  async decided(host: Host): Promise<void> {
    const failAt = performance.now() + decidedWithinMs;
    while (host.isAway && !host.isGivenUp) {
      if (this.#isClosed || this.answering().length === 0 || performance.now() > failAt)
        throw new NotAsked('unavailable', `the host ${host.name} is away: ${host.reason}`);
      await delay(askEveryMs);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer) clearTimeout(this.#timer);
    await Promise.all(this.all.map((host) => host.close()));
  }

  #removeOthers(counts: Found, all: Found[]): void {
    if (!counts.isCurrent) return;
    for (const { host, isCurrent, instance } of all) {
      const key = `${host.name} ${instance.id}`;
      if (host === counts.host || !isCurrent || this.#removing.has(key)) continue;
      const fields = { instance: instance.id, host: host.name, runsOn: counts.host.name };
      this.#options.log?.info(fields, 'removing an instance that was started on another host meanwhile');
      this.#removing.add(key);
      host
        .ask((engine) => engine.stop(instance.id, 0))
        .catch((error) => this.#options.log?.warn({ err: error, ...fields }, 'instance not removed'))
        .finally(() => this.#removing.delete(key));
    }
  }

  #onVerdict(host: Host): void {
    const { log, onChange } = this.#options;
    if (host.isAway) log?.warn({ host: host.name, reason: host.reason }, 'a host of a region does not answer');
    else log?.info({ host: host.name }, 'a host of a region answers');
    this.#review();
    if (!host.isAway) onChange();
  }

  /** Gives up hosts whose time is over, and comes back for the others. */
  #review(): void {
    if (this.#timer) clearTimeout(this.#timer);
    if (this.#isClosed) return;
    const nowMs = performance.now();
    this.#someAnswerSince = this.answering().length === 0 ? null : (this.#someAnswerSince ?? nowMs);
    if (this.#someAnswerSince === null) return;
    let nextMs = Number.POSITIVE_INFINITY;
    for (const host of this.all) {
      if (host.awaySince === null || host.isGivenUp) continue;
      const leftMs = Math.max(host.awaySince, this.#someAnswerSince) + this.#options.graceMs - nowMs;
      if (leftMs <= 0 && nowMs - host.failedAt < justNowMs) this.#giveUp(host);
      else nextMs = Math.min(nextMs, Math.max(leftMs, askEveryMs));
    }
    if (nextMs < Number.POSITIVE_INFINITY) this.#timer = setTimeout(() => this.#review(), nextMs).unref();
  }

  #giveUp(host: Host): void {
    host.giveUp();
    const fields = { host: host.name, reason: host.reason };
    this.#options.log?.warn(
      fields,
      'a host of a region was away for too long: its instances are replaced on the others',
    );
    this.#options.onChange();
  }
}

function foundIn({ host, isCurrent, found }: HostListing): Found[] {
  // What it runs is not known: to leave it out would be to say that it is gone.
  if (!found) throw new NotAsked('unavailable', `the host ${host.name} has not answered yet: ${host.reason}`);
  return found.map(({ instance, createdAt }) => ({
    host,
    isCurrent,
    createdAt,
    state: instance.state,
    instance: isCurrent ? instance : { ...instance, hostAway: true },
  }));
}

// Watches a run: reads the facts after every commit, asks every invariant, and remembers the first that is broken.

import { routerLeaseMs } from './control-process.ts';
import { FactReader, type Facts, noFacts, type Table } from './facts.ts';
import type { Installation } from './installation.ts';
import { findUnrest } from './invariants/calm.ts';
import { type Commit, type CommitInvariant, environmentOf, type OfEnvironment } from './invariants/commit.ts';
import { arrivedWithEqualBytes, findUnsentSuccess, overtakes } from './invariants/deliveries.ts';
import * as deployments from './invariants/deployments.ts';
import * as events from './invariants/events.ts';
import { isStoppedTooEarly } from './invariants/routing.ts';
import { findLateRollout, findOldOrphan } from './invariants/time.ts';
import * as traffic from './invariants/traffic.ts';
import { findLostVersion, findLostWrite, findWrongWrite } from './ledger.ts';
import type { Machine } from './machine.ts';

export interface Breach {
  invariant: string;
  message: string;
}

/** Whether a process that has lost a lease writes nothing any more, however long it was held up. */
export interface Promises {
  fencing: boolean;
}

/** A look at an environment whose calls all take as long as they should is over within this time. */
const longestLookMs = 8000;
const leaseMs = 20_000 + 2000;

export class Judge {
  breach: Breach | null = null;
  facts: Facts = noFacts;
  checks = 0;
  readonly #installation: Installation;
  readonly #reader: FactReader;
  readonly #promises: Promises;
  readonly #byTable: Map<Table, CommitInvariant[]>;
  readonly #orphanSince = new Map<string, number>();
  /** By environment: what it was set to, and since when. */
  readonly #replicas = new Map<string, { at: number; replicas: number }[]>();

  constructor(installation: Installation, promises: Promises) {
    this.#installation = installation;
    this.#promises = promises;
    const { database, receivers, engines } = installation;
    this.#reader = new FactReader(database);
    this.#byTable = byTable(commitInvariants);
    database.onCommit = (machine, written) => this.#afterCommit(machine, written);
    receivers.onArrival = (arrival) => {
      const delivery = this.facts.delivery.find(({ id }) => id === arrival.delivery);
      const event = this.facts.event.find(({ id }) => id === arrival.event);
      this.#ask('every delivery arrives with equal bytes', arrivedWithEqualBytes(arrival, delivery, event, receivers));
      this.#ask('a strict webhook gets its deliveries in order', overtakes(arrival, this.facts));
    };
    for (const engine of engines) {
      engine.onChange = () => this.#noteOrphans();
      engine.onStop = (instance) => {
        const routers = installation.liveRouters();
        const stopped = { instance, facts: this.facts, routers, leaseMs: routerLeaseMs, nowMs: installation.world.now };
        this.#ask('no instance is stopped that a live router routes to', isStoppedTooEarly(stopped));
      };
    }
  }

  /** What holds at every moment. */
  afterStep(): void {
    const { world, engines, control } = this.#installation;
    const nowMs = world.now;
    const calmSince = this.#installation.calmSince();
    if (this.#orphanSince.size > 0) {
      const upSince = Math.max(...engines.map(({ upSince }) => upSince));
      const machines = control.flatMap(({ process }) => (process ? [process.machine] : []));
      this.#ask(
        'no instance without a row for longer than a sweep',
        findOldOrphan(this.#orphanSince, machines, upSince, nowMs),
      );
    }
    this.#ask('a rollout ends before its deadlines', findLateRollout(this.facts, calmSince, nowMs));
  }

  /** An answer arrived at a client, or a process crashed. */
  checkLedger(): void {
    const { client } = this.#installation;
    const list = client.writes();
    this.#ask('an acknowledged write is there', findLostWrite(list, this.facts));
    this.#ask('a refused write is not there, and none is there twice', findWrongWrite(list, this.facts));
    this.#ask('an acknowledged change is there', findLostVersion(client.promised.values(), this.facts));
  }

  isBusy(of: OfEnvironment): boolean {
    const key = environmentOf(of);
    return this.facts.deployment.some((row) => row.finished_at === null && environmentOf(row) === key);
  }

  /** What has not calmed down yet; null: everything has. */
  unrest(): string | null {
    const { engines } = this.#installation;
    const instances = new Map(engines.flatMap((engine) => [...engine.instances]));
    return findUnrest({ facts: this.facts, instances, routers: this.#installation.liveRouters() });
  }

  complain(invariant: string, message: string): void {
    this.breach ??= { invariant, message };
  }

  #ask(invariant: string, message: string | null): void {
    this.checks++;
    if (message !== null) this.complain(invariant, message);
  }

  #afterCommit(machine: Machine, written: ReadonlySet<string>): void {
    const { facts, changed } = this.#reader.read(this.facts, written);
    if (changed.has('environment')) this.#noteReplicas(facts);
    const commit: Commit = {
      before: this.facts,
      after: facts,
      by: machine.processId,
      leastReplicas: changed.has('instance') ? this.#leastReplicas() : new Map(),
    };
    this.facts = facts;
    const asked = new Set<CommitInvariant>();
    for (const table of changed) for (const invariant of this.#byTable.get(table) ?? []) asked.add(invariant);
    for (const invariant of asked) {
      if (invariant === traffic.onlyTheHolderActs && !this.#mustBeHolder(machine)) continue;
      this.#ask(invariant.name, invariant.check(commit));
    }
    if (written.has('router')) machine.beatAt = this.#installation.world.now;
    if (changed.has('delivery')) {
      const message = findUnsentSuccess(commit, this.#installation.receivers);
      this.#ask('a delivery that succeeded has arrived', message);
    }
    if (!changed.has('instance')) return;
    this.#noteOrphans();
  }

  /** Without a fence a process that was held up may finish what it had begun with a lease it no longer has. */
  #mustBeHolder(machine: Machine): boolean {
    if (this.#promises.fencing) return true;
    const { world } = this.#installation;
    return world.now - machine.heldUpAt > longestLookMs && this.#installation.haveClocksAgreed(leaseMs);
  }

  #noteReplicas({ environment }: Facts): void {
    const at = this.#installation.world.now;
    for (const { project_id, name, replicas } of environment) {
      const key = environmentOf({ project_id, environment: name });
      const known = this.#replicas.get(key) ?? [];
      if (known.at(-1)?.replicas !== replicas) this.#replicas.set(key, [...known.slice(-8), { at, replicas }]);
    }
  }

  #leastReplicas(): Map<string, number> {
    const since = this.#installation.world.now - longestLookMs;
    const least = new Map<string, number>();
    for (const [key, known] of this.#replicas) {
      const lately = known.filter((_, i) => (known[i + 1]?.at ?? Number.POSITIVE_INFINITY) >= since);
      least.set(key, Math.min(...lately.map(({ replicas }) => replicas)));
    }
    return least;
  }

  #noteOrphans(): void {
    const known = new Set(this.facts.instance.map(({ id }) => id));
    const found = new Set(this.#installation.engines.flatMap(({ instances }) => [...instances.keys()]));
    for (const id of found) {
      if (!known.has(id) && !this.#orphanSince.has(id)) this.#orphanSince.set(id, this.#installation.world.now);
    }
    for (const id of this.#orphanSince.keys()) if (!found.has(id) || known.has(id)) this.#orphanSince.delete(id);
  }
}

const commitInvariants: readonly CommitInvariant[] = [
  ...Object.values(deployments),
  ...Object.values(events),
  ...Object.values(traffic),
];

function byTable(invariants: readonly CommitInvariant[]): Map<Table, CommitInvariant[]> {
  const map = new Map<Table, CommitInvariant[]>();
  for (const invariant of invariants) {
    for (const table of invariant.tables) map.set(table, [...(map.get(table) ?? []), invariant]);
  }
  return map;
}

// Watches a run: reads the facts after every commit, asks every invariant, and remembers the first that is broken.
import type { Client } from './client.ts';
import * as everyCommit from './commit-invariants.ts';
import type { LeaseTimes } from './control-process.ts';
import { Coverage } from './coverage.ts';
import type { SimulatedDatabase } from './database.ts';
import type { SimulatedEngine, SimulatedInstance } from './engine.ts';
import {
  type Commit,
  type CommitInvariant,
  environmentOf,
  FactReader,
  type Facts,
  noFacts,
  type OfEnvironment,
  type Table,
} from './facts.ts';
import type { Faults } from './faults.ts';
import { findLostVersion, findLostWrite, findWrongWrite } from './ledger.ts';
import {
  arrivedWithEqualBytes,
  findCountedTwice,
  findLateRollout,
  findOldOrphan,
  findReusedPort,
  findRoutedUnfit,
  findUnrest,
  findUnsentSuccess,
  findUntoldSick,
  isStoppedTooEarly,
  type LiveRouter,
  overtakes,
  type PortHistory,
} from './moment-invariants.ts';
import type { Receivers } from './receivers.ts';
import type { Visits } from './visits.ts';
import type { Machine, World } from './world.ts';

export interface Breach {
  invariant: string;
  message: string;
}

/** What the judge watches of an installation. */
export interface Watched {
  readonly world: World;
  readonly database: SimulatedDatabase;
  readonly engines: readonly SimulatedEngine[];
  readonly receivers: Receivers;
  readonly visits: Visits;
  readonly isShared: boolean;
  readonly faults: Faults;
  readonly client: Client;
  readonly leases: LeaseTimes;
  /** Control processes; null: down, or still starting. */
  readonly control: readonly { process: { machine: Machine } | null }[];
  /** When a fault last touched a control process or an engine. */
  calmSince(): number;
  liveRouters(): readonly LiveRouter[];
}

/** A reconcile pass whose calls all take as long as they should is over within this time. */
const longestPassMs = 8000;
/** A process that was paused during a pass may go on with it as long as it has the lease. */
const longestPausedPassMs = 60_000;

interface Settings {
  at: number;
  replicas: number;
  drain_s: number;
}

export class Judge {
  breach: Breach | null = null;
  facts: Facts = noFacts;
  checks = 0;
  readonly #watched: Watched;
  readonly #reader: FactReader;
  readonly #byTable: Map<Table, CommitInvariant[]>;
  readonly #orphanSince = new Map<string, number>();
  readonly #drainingSince = new Map<string, number>();
  /** By deployment: its deadline in virtual time, however wrong the clock was that it was written by. */
  readonly #deadlines = new Map<string, number>();
  readonly coverage = new Coverage();
  readonly #unfitSince = new Map<string, number>();
  readonly #ports: PortHistory = new Map();
  #steps = 0;
  /** By environment: what it was set to, and since when. */
  readonly #settings = new Map<string, Settings[]>();

  constructor(watched: Watched) {
    this.#watched = watched;
    const { database, receivers, engines } = watched;
    this.#reader = new FactReader(database.reader);
    this.#byTable = byTable(commitInvariants);
    database.onCommit = (...commit) => this.#afterCommit(...commit);
    receivers.onArrival = (arrival) => {
      const delivery = this.facts.delivery.find(({ id }) => id === arrival.delivery);
      const event = this.facts.event.find(({ id }) => id === arrival.event);
      this.#ask('every delivery arrives with equal bytes', arrivedWithEqualBytes(arrival, delivery, event, receivers));
      this.#ask('a strict webhook gets its deliveries in order', overtakes(arrival, this.facts));
    };
    for (const engine of engines) {
      engine.onChange = () => this.#noteOrphans();
      engine.onStop = (instance) => this.#beforeStop(instance);
      engine.onStart = ({ spec, host, port }) => this.#beforeStart(spec.id, host, port);
    }
    watched.visits.onWrong = (invariant, message) => this.complain(invariant, message);
    database.onSignal = (message) => this.#ask('a signal follows its commit, and every commit', message);
    database.onLeaseLost = () => this.coverage.reach('a lease was lost when it was to be confirmed');
  }

  /** What holds at every moment. */
  afterStep(): void {
    const { world, engines, control, leases } = this.#watched;
    const nowMs = world.now;
    const calmSince = this.#watched.calmSince();
    if (this.#orphanSince.size > 0) {
      const upSince = Math.max(...engines.map(({ upSince }) => upSince));
      const machines = control.flatMap(({ process }) => (process ? [process.machine] : []));
      this.#ask(
        'no instance or set without a row for longer than a sweep',
        findOldOrphan(this.#orphanSince, machines, upSince, leases.routerMs, nowMs),
      );
    }
    if (++this.#steps % 20 === 0) {
      for (const router of this.#watched.liveRouters()) {
        this.#ask(
          'no visitor is sent to an instance that is not healthy',
          findRoutedUnfit(router, this.#unfitSince, nowMs),
        );
      }
    }
    if (this.#steps % 20 === 0 && control.length === 1) {
      const sickForMs = (id: string) => Math.max(...engines.map((engine) => engine.sickForMs(id)));
      const message = findUntoldSick(this.facts, sickForMs, calmSince, nowMs);
      this.#ask('an instance that fails its health check is not healthy', message);
    }
    this.#ask('a rollout ends before its deadlines', findLateRollout(this.facts, this.#deadlines, calmSince, nowMs));
  }

  /** An answer arrived at a client, or a process crashed. */
  checkLedger(): void {
    const { client } = this.#watched;
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
    const { engines } = this.#watched;
    const instances = new Map(engines.flatMap((engine) => [...engine.instances]));
    const sets = new Set(engines.flatMap((engine) => [...engine.sets]));
    return findUnrest({ facts: this.facts, instances, sets, routers: this.#watched.liveRouters() });
  }

  #beforeStop(instance: SimulatedInstance): void {
    const { world, leases } = this.#watched;
    const { id, project, environment } = instance.spec;
    const key = environmentOf({ project_id: project, environment });
    const stopped = {
      instance,
      facts: this.facts,
      routers: this.#watched.liveRouters(),
      leaseMs: leases.routerMs,
      nowMs: world.now,
      drainingSince: this.#drainingSince.get(id) ?? null,
      drainMs: 1000 * (this.#least(({ drain_s }) => drain_s, longestPausedPassMs).get(key) ?? 0),
    };
    this.#ask('no instance is stopped before routers and requests have left it', isStoppedTooEarly(stopped));
  }

  /** Visitors who are sent to another instance at this address would reach this one. */
  #beforeStart(id: string, host: string, port: number): void {
    const { world, leases } = this.#watched;
    const counted = this.#watched.liveRouters().filter(({ beatAt }) => world.now - beatAt < leases.routerMs);
    const router = counted.find((one) => (one.targetAt(host, port) ?? id) !== id);
    const other = router?.targetAt(host, port);
    const message = router ? `${id} starts at ${port}, where ${router.name} sends visitors of ${other}` : null;
    this.#ask('no instance starts at an address that is routed to another', message);
  }

  complain(invariant: string, message: string): void {
    this.breach ??= { invariant, message };
  }

  #ask(invariant: string, message: string | null): void {
    this.checks++;
    if (message !== null) this.complain(invariant, message);
  }

  #afterCommit(machine: Machine, written: ReadonlySet<string>, leased: OfEnvironment | null): void {
    const { facts, changed } = this.#reader.read(this.facts, written);
    if (changed.has('environment')) this.#noteSettings(facts);
    if (changed.has('deployment')) this.#noteDeadlines(facts, machine);
    const commit: Commit = {
      before: this.facts,
      after: facts,
      by: machine.processId,
      leased,
      leastReplicas: changed.has('instance') ? this.#least(({ replicas }) => replicas, longestPassMs) : new Map(),
    };
    this.facts = facts;
    this.coverage.note(commit);
    const asked = new Set<CommitInvariant>();
    for (const table of changed) for (const invariant of this.#byTable.get(table) ?? []) asked.add(invariant);
    for (const invariant of asked) {
      this.#ask(invariant.name, invariant.check(commit));
    }
    if (written.has('router')) machine.beat(this.#watched.leases.routerMs);
    if (changed.has('delivery')) {
      const message = findUnsentSuccess(commit, this.#watched.receivers);
      this.#ask('a delivery that succeeded has arrived', message);
    }
    if (changed.has('instance') || changed.has('instance_set')) this.#noteOrphans();
    if (changed.has('instance')) {
      this.#noteDrains();
      this.#noteUnfit(commit);
    }
    // An embedded database goes by the clock of its process, which may jump.
    const { isShared, faults } = this.#watched;
    if ((changed.has('instance') || changed.has('instance_port')) && (isShared || faults.perMinute.clock_jump === 0)) {
      this.#ask('a port rests before it is used again', findReusedPort(facts, this.#ports, this.#watched.world.now));
    }
    if (changed.has('traffic')) {
      this.#ask('a request is counted once', findCountedTwice(facts, this.#watched.visits.sent));
    }
  }

  #noteDrains(): void {
    const rows = this.facts.instance.filter(({ state }) => state === 'draining');
    const draining = new Set(rows.map(({ id }) => id));
    for (const id of draining) {
      if (!this.#drainingSince.has(id)) this.#drainingSince.set(id, this.#watched.world.now);
    }
    for (const id of this.#drainingSince.keys()) if (!draining.has(id)) this.#drainingSince.delete(id);
  }

  #noteUnfit({ before, after }: Commit): void {
    const now = this.#watched.world.now;
    const healthy = new Set(after.instance.filter(({ state }) => state === 'healthy').map(({ id }) => id));
    for (const { id, state } of before.instance) {
      if (state === 'healthy' && !healthy.has(id) && !this.#unfitSince.has(id)) this.#unfitSince.set(id, now);
    }
    for (const id of healthy) this.#unfitSince.delete(id);
    // Where an environment has no healthy instance, visitors are sent to the one that was healthy last.
    for (const { id, is_fallback } of after.instance) if (is_fallback === 1) this.#unfitSince.delete(id);
  }

  #noteDeadlines({ deployment }: Facts, { deadlinesAheadMs }: Machine): void {
    const before = new Map(this.facts.deployment.map((row) => [row.id, row.deadline_at]));
    for (const { id, deadline_at } of deployment) {
      if (deadline_at === null) this.#deadlines.delete(id);
      else if (deadline_at !== before.get(id)) this.#deadlines.set(id, deadline_at - deadlinesAheadMs);
    }
  }

  #noteSettings({ environment }: Facts): void {
    const at = this.#watched.world.now;
    for (const { project_id, name, replicas, drain_s } of environment) {
      const key = environmentOf({ project_id, environment: name });
      const known = this.#settings.get(key) ?? [];
      const last = known.at(-1);
      if (last?.replicas === replicas && last.drain_s === drain_s) continue;
      this.#settings.set(key, [...known.slice(-30), { at, replicas, drain_s }]);
    }
  }

  /** The least that each environment was set to in this time. */
  #least(of: (settings: Settings) => number, inMs: number): Map<string, number> {
    const since = this.#watched.world.now - inMs;
    const least = new Map<string, number>();
    for (const [key, known] of this.#settings) {
      const lately = known.filter((_, i) => (known[i + 1]?.at ?? Number.POSITIVE_INFINITY) >= since);
      least.set(key, Math.min(...lately.map(of)));
    }
    return least;
  }

  #noteOrphans(): void {
    const known = new Set([...this.facts.instance, ...this.facts.instance_set].map(({ id }) => id));
    const found = new Set(this.#watched.engines.flatMap(({ instances, sets }) => [...instances.keys(), ...sets]));
    for (const id of found) {
      if (!known.has(id) && !this.#orphanSince.has(id)) this.#orphanSince.set(id, this.#watched.world.now);
    }
    for (const id of this.#orphanSince.keys()) if (!found.has(id) || known.has(id)) this.#orphanSince.delete(id);
  }
}

const commitInvariants: readonly CommitInvariant[] = Object.values(everyCommit);

function byTable(invariants: readonly CommitInvariant[]): Map<Table, CommitInvariant[]> {
  const map = new Map<Table, CommitInvariant[]>();
  for (const invariant of invariants) {
    for (const table of invariant.tables) map.set(table, [...(map.get(table) ?? []), invariant]);
  }
  return map;
}

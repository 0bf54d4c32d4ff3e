// The whole simulated installation: control processes, routers, the database they share, engines, receivers, clients, and
// everything that goes wrong.
import type { Db } from '../src/db/database.ts';
import type { Log } from '../src/lib/log.ts';
import { type Batch, hubOf } from '../src/signals/signals.ts';
import { Client } from './client.ts';
import {
  type ControlProcess,
  type LeaseTimes,
  type RouterProcess,
  startControlProcess,
  startRouterProcess,
} from './control-process.ts';
import { SharedDatabase, type SimulatedDatabase } from './database.ts';
import { EmbeddedDatabase } from './embedded-database.ts';
import { SimulatedEngine } from './engine.ts';
import { type FaultSwitches, Faults, type Incident } from './faults.ts';
import { Judge } from './judge.ts';
import { Outside } from './outside.ts';
import { People } from './people.ts';
import { Random } from './random.ts';
import { Receivers } from './receivers.ts';
import { Visits } from './visits.ts';
import { Machine, World } from './world.ts';

/** The place of a process: it is started again where it crashed. */
interface Slot<P> {
  name: string;
  machine: Machine | null;
  db: Db | null;
  /** null: down, or still starting. */
  process: P | null;
  starts: number;
  /** Of the computer that it runs on. */
  clockOffsetMs: number;
}

interface Setup {
  seed: number;
  databasePath: string;
  switches: FaultSwitches;
}

const slotOf = <P>(name: string): Slot<P> => ({
  name,
  machine: null,
  db: null,
  process: null,
  starts: 0,
  clockOffsetMs: 0,
});

export class Installation {
  readonly world: World;
  readonly faults: Faults;
  readonly outside: Outside;
  readonly database: SimulatedDatabase;
  /** Otherwise there is one process, on the shipped SQLite driver, which is the router too. */
  readonly isShared: boolean;
  readonly leases: LeaseTimes;
  readonly engines: SimulatedEngine[];
  readonly receivers: Receivers;
  readonly visits = new Visits();
  /** Few, in some: then they have to be used again. */
  readonly ports: number;
  readonly control: Slot<ControlProcess>[];
  readonly routers: Slot<RouterProcess>[];
  readonly client: Client;
  readonly people: People;
  readonly judge: Judge;
  crashes = 0;
  readonly #log: (machine: Machine) => Log;

  constructor({ seed, databasePath, switches }: Setup, log: (machine: Machine, judge: Judge) => Log) {
    this.world = new World(seed);
    this.faults = new Faults(new Random(seed, 'faults'), switches);
    this.outside = new Outside(this.world, this.faults);
    this.isShared = this.world.random.chance(0.75);
    this.database = this.isShared
      ? new SharedDatabase(this.world, this.outside, databasePath)
      : new EmbeddedDatabase(this.world, this.faults, databasePath);
    this.leases = {
      environmentMs: this.world.random.pick([6000, 20_000] as const),
      routerMs: this.world.random.pick([4000, 15_000] as const),
    };
    this.ports = this.world.random.pick([8, 24, 400] as const);
    this.engines = [new SimulatedEngine(this.world, this.outside, 'here')];
    this.receivers = new Receivers(this.world, this.outside, this.faults);
    const controls = this.isShared ? this.world.random.pick([1, 2, 2, 3, 3] as const) : 1;
    this.control = Array.from({ length: controls }, (_, i) => slotOf(`control-${i + 1}`));
    this.routers = (this.isShared ? ['router-1', 'router-2'] : ['router']).map((name) => slotOf(name));
    const processes = () => this.control.flatMap(({ process }) => (process ? [process] : []));
    this.client = new Client(this.world, this.faults, processes, () => this.judge.checkLedger());
    this.people = new People(this.world, this.client, (of) => this.judge.isBusy(of));
    for (const incident of this.people.spared) this.faults.perMinute[incident] = 0;
    this.judge = new Judge(this);
    this.#log = (machine) => log(machine, this.judge);
  }

  start(): void {
    for (const slot of this.control) this.startControl(slot);
    if (this.isShared) for (const slot of this.routers) this.startRouter(slot);
    this.#sendVisitors();
    this.people.start();
    planIncidents(this);
  }

  /** Nothing goes wrong any more, and nobody asks for anything new. */
  calmDown(): void {
    this.faults.isOn = false;
    this.people.isActive = false;
    this.database.isDiskFull = false;
    for (const machine of this.machines()) {
      machine.setClock(0);
      machine.disturb();
    }
  }

  startControl(slot: Slot<ControlProcess>): void {
    const { machine, db } = this.#boot(slot, () => this.startControl(slot));
    this.world.after(machine, this.world.random.between(5, 300), 'start', () => {
      const { isShared, leases, ports, visits } = this;
      const parts = { machine, db, log: this.#log(machine), isShared, leases, ports, visits };
      startControlProcess(parts, this.engines, this.receivers)
        .then((process) => {
          slot.process = process;
          return this.isShared
            ? null
            : startRouterProcess(this.world, parts).then((router) => {
                this.routers[0]!.process = router;
              });
        })
        .catch(() => machine.crash());
    });
  }

  startRouter(slot: Slot<RouterProcess>): void {
    const { machine, db } = this.#boot(slot, () => this.startRouter(slot));
    this.world.after(machine, this.world.random.between(5, 300), 'start', () => {
      const { leases, ports, visits } = this;
      const parts = { machine, db, log: this.#log(machine), isShared: true, leases, ports, visits };
      startRouterProcess(this.world, parts)
        .then((process) => {
          slot.process = process;
        })
        .catch(() => machine.crash());
    });
  }

  machines = (): Machine[] => [...this.control, ...this.routers].flatMap(({ machine }) => (machine ? [machine] : []));

  hubs = () =>
    [...this.control, ...this.routers].flatMap(({ machine, db }) =>
      machine && db ? [{ machine, listeners: hubOf(db).listeners }] : [],
    );

  /** When a fault last touched a control process or an engine. */
  calmSince(): number {
    const machines = this.control.map(({ machine }) => machine?.calmSince ?? this.world.now);
    return Math.max(...machines, ...this.engines.map(({ upSince }) => upSince));
  }

  liveRouters() {
    return this.routers.flatMap(({ process }) =>
      process
        ? [
            {
              name: process.machine.name,
              targets: process.dataPlane.targets(),
              leftAt: process.dataPlane.leftAt,
              beatAt: process.machine.beatAt,
              liveSince: process.machine.liveSince,
              calmSince: process.machine.calmSince,
              targetAt: (host: string, port: number) => process.dataPlane.targetAt(host, port),
            },
          ]
        : [],
    );
  }

  #boot(slot: Slot<ControlProcess> | Slot<RouterProcess>, restart: () => void): { machine: Machine; db: Db } {
    const { world } = this;
    const machine = new Machine(world, slot.name, ++slot.starts, this.faults.isOn ? slot.clockOffsetMs : 0);
    const db = this.database.connect(machine);
    if (this.isShared) hubOf(db).forward = (batch) => this.#forward(machine, batch);
    slot.machine = machine;
    slot.db = db;
    machine.onCrash.push(() => {
      this.crashes++;
      slot.clockOffsetMs = machine.clockOffsetMs;
      slot.machine = null;
      slot.db = null;
      slot.process = null;
      if (!this.isShared) this.routers[0]!.process = null;
      this.judge.checkLedger();
      const mostMs = world.random.chance(0.1) ? 30_000 : 1500;
      world.after(null, world.random.between(20, mostMs), `${slot.name} starts again`, restart);
    });
    return { machine, db };
  }

  /** To the other processes, as NOTIFY does: soon, or late, or twice, or never. */
  #forward(from: Machine, batch: Batch): void {
    const { world, faults } = this;
    for (const { machine, db } of [...this.control, ...this.routers]) {
      if (!machine || !db || machine === from) continue;
      const fault = faults.ofCall('signal');
      if (fault === 'lost_call') {
        machine.disturb();
        continue;
      }
      const deliver = () => {
        for (const [topic, signals] of batch) {
          const list = [...signals.values()];
          for (const listener of hubOf(db).listeners.get(topic) ?? []) listener(list);
        }
      };
      const ms = fault === 'late_answer' ? world.random.between(100, 5000) : world.random.between(0.1, 3);
      world.after(machine, ms, 'signals', deliver);
      if (fault === 'doubled') world.after(machine, ms + world.random.between(0, 500), 'signals again', deliver);
    }
  }

  #sendVisitors(): void {
    const { world } = this;
    world.after(null, world.random.between(200, 900), 'visitors', () => {
      for (const { process } of this.routers) {
        if (process && !process.machine.isPaused)
          process.dataPlane.visit(this.engines, world.random, this.people.visitorsAtOnce);
      }
      this.#sendVisitors();
    });
  }
}

const incidents: Record<Incident, (of: Installation) => void> = {
  crash: ({ world, machines }) => world.random.pick(machines())?.crash(),
  pause: ({ world, machines }) => world.random.pick(machines())?.pause(world.random.between(100, 5000)),
  long_pause: ({ world, machines }) => world.random.pick(machines())?.pause(world.random.between(15_000, 45_000)),
  clock_jump({ world, machines, faults, routers, isShared }) {
    const machine = world.random.pick(machines());
    if (!machine) return;
    const isRouter = isShared && routers.some((slot) => slot.machine === machine);
    const most = isRouter ? faults.switches.routerClockJumpMs : faults.switches.clockJumpMs;
    machine.setClock(world.random.chance(0.3) ? 0 : world.random.between(-most, most));
  },
  full_disk({ world, database, machines }) {
    database.isDiskFull = true;
    for (const machine of machines()) machine.disturb();
    world.after(null, world.random.between(10, 4000), 'the disk has room again', () => {
      database.isDiskFull = false;
      for (const machine of machines()) machine.disturb();
    });
  },
  reconnect: ({ world, hubs }) => {
    const hub = world.random.pick(hubs());
    if (!hub) return;
    world.after(hub.machine, 1, 'signals may have been lost', () => {
      for (const listeners of hub.listeners.values()) for (const listener of listeners) listener([]);
    });
  },
  engine_down: ({ world, engines }) => world.random.pick(engines)!.goDown(world.random.between(200, 12_000)),
  engine_restart({ world, engines }) {
    const engine = world.random.pick(engines)!;
    engine.restart();
    engine.goDown(world.random.between(50, 3000));
  },
  engine_forgets({ world, engines }) {
    const engine = world.random.pick(engines)!;
    const id = world.random.pick([...engine.instances.keys()]);
    if (id !== undefined) engine.forget(id);
  },
  instance_exits({ world, engines }) {
    const engine = world.random.pick(engines)!;
    const instance = world.random.pick([...engine.instances.values()]);
    if (instance) engine.exit(instance, 1);
  },
  receiver_down({ world, receivers }) {
    const path = world.random.pick([...receivers.known]);
    if (path === undefined || receivers.down.has(path)) return;
    receivers.down.add(path);
    world.after(null, world.random.between(500, 15_000), `${path} is back`, () => receivers.down.delete(path));
  },
};

/** What goes wrong by itself, at times that the seed decides. */
function planIncidents(installation: Installation): void {
  const { world, faults } = installation;
  for (const name of Object.keys(incidents) as Incident[]) {
    const perMinute = faults.perMinute[name];
    if (perMinute === 0) continue;
    const next = () => {
      const ms = (-Math.log(1 - world.random.next()) * 60_000) / perMinute;
      world.after(null, ms, name, () => {
        if (!faults.isOn) return;
        faults.count++;
        incidents[name](installation);
        next();
      });
    };
    next();
  }
}

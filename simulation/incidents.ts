// What goes wrong by itself, at times that the seed decides.
import type { Incident } from './faults.ts';
import type { Installation } from './installation.ts';

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

export function planIncidents(installation: Installation): void {
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

// Carries out the plan, and remembers what befell which process from when until when.
import { commandOf } from '../helpers/children.ts';
import type { FaultKind, PlannedFault } from './plan.ts';
import type { FaultRecord } from './records.ts';
import type { World } from './world.ts';

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

interface Target {
  pid: number;
  service: string | null;
  /** Nobody can visit the service until it is back. */
  takesRouter?: boolean;
  /** Resolves when what it did is done again. */
  back?: () => Promise<void>;
}

export class Faults {
  readonly records: FaultRecord[] = [];
  /** There was nothing to hit at that time. */
  skipped = 0;
  readonly #world: World;
  readonly #allServed: () => Promise<void>;
  readonly #say: (line: string) => void;
  readonly #lasting = new Set<Promise<void>>();
  readonly #stopped = new Set<number>();
  #engineOrDatabase: Promise<void> = Promise.resolve();

  /** `allServed` resolves when every site answers at every router. */
  constructor(world: World, allServed: () => Promise<void>, say: (line: string) => void) {
    this.#world = world;
    this.#allServed = allServed;
    this.#say = say;
  }

  /** Resolves when the last one is over and everything is back. */
  async run(plan: PlannedFault[], isOver: () => boolean): Promise<void> {
    const startedAt = Date.now();
    for (const fault of plan) {
      while (!isOver() && Date.now() - startedAt < fault.atMs) await wait(50);
      if (isOver()) break;
      const lasting = this.#carryOut(fault);
      this.#lasting.add(lasting);
      void lasting.finally(() => this.#lasting.delete(lasting)).catch(() => {});
    }
    await Promise.all(this.#lasting);
  }

  async #carryOut({ kind, pick, forMs }: PlannedFault): Promise<void> {
    const [act, part] = kind.split(' ') as [string, string];
    if (part === 'docker' || part === 'postgres') {
      // One after another: a restart needs what another one would take away.
      const turn = this.#engineOrDatabase.then(() => this.#shake(kind, forMs));
      this.#engineOrDatabase = turn;
      return turn;
    }
    const targets = this.#targets(part).filter(({ pid }) => !this.#stopped.has(pid));
    const target = targets[Math.floor(pick * targets.length)];
    if (!target) {
      this.skipped++;
      return;
    }
    const record = this.#record(kind, target, act === 'stop' ? forMs : 0);
    if (act === 'stop') await this.#stop(target.pid, forMs);
    else send(part === 'service' ? -target.pid : target.pid, 'SIGKILL');
    if (act === 'kill') await target.back?.();
    record.toMs = Date.now();
  }

  #targets(part: string): Target[] {
    const { services, receivers } = this.#world;
    if (part === 'receiver')
      return receivers.flatMap(({ process: { pid } }) => (pid === null ? [] : [{ pid, service: null }]));
    return services.flatMap(({ name: service, plane, process, control, workers, routes }) => {
      // HAProxy has one worker at a time, and ends with it; but it outlives the service.
      const isAlone = plane === 'haproxy';
      if (part === 'worker') return workers().map((pid) => ({ pid, service, ...(isAlone && { back: routes }) }));
      if (part === 'control') return control().map((pid) => ({ pid, service }));
      // Of a killed supervisor the workers serve on.
      const back = async () => {
        await wait(100);
        await process.ready();
      };
      return process.pid === null
        ? []
        : [{ pid: process.pid, service, takesRouter: part === 'service' && !isAlone, back }];
    });
  }

  #record(
    kind: FaultKind,
    { pid, service, takesRouter = false }: Omit<Target, 'pid'> & { pid: number | null },
    forMs: number,
  ): FaultRecord {
    const record = { kind, service, pid, takesRouter, fromMs: Date.now(), toMs: Number.POSITIVE_INFINITY };
    this.records.push(record);
    this.#say(`${kind} ${service ?? ''} ${pid ?? ''}${forMs > 0 ? ` for ${forMs} ms` : ''}`);
    return record;
  }

  async #stop(pid: number, forMs: number): Promise<void> {
    const command = commandOf(pid);
    this.#stopped.add(pid);
    send(pid, 'SIGSTOP');
    await wait(forMs);
    if (commandOf(pid) === command) send(pid, 'SIGCONT');
    this.#stopped.delete(pid);
  }

  async #shake(kind: FaultKind, forMs: number): Promise<void> {
    const { docker, postgres } = this.#world;
    const record = this.#record(kind, { pid: null, service: null }, forMs);
    if (kind === 'stop docker') {
      await docker.freeze();
      await wait(forMs);
      docker.thaw();
    } else {
      const part = kind.endsWith('docker') ? docker : postgres!;
      await (kind.startsWith('restart') ? part.pause() : part === docker ? docker.kill() : postgres!.crash());
      await wait(forMs);
      await part.resume();
      if (part === docker) await this.#allServed();
    }
    record.toMs = Date.now();
    this.#say(`${kind}: over after ${record.toMs - record.fromMs} ms`);
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended meanwhile.
  }
}

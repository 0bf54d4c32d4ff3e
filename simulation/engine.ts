// The engine of a region, and the registry behind it. What an image does is in its name: `sim/crash:7` ends soon after
// its start, `sim/errors:1` fails half of its requests, `sim/broken:1` all of them, `sim/hangs:1` does not answer a third,
// `sim/rare:1` one in twelve, `sim/clustered:1` fails always for some visitors, the first instance of `sim/lemon:1` fails all
// requests, `sim/sickens:1` fails its health check for a while, and what `sim/gone:1` started ends some time after its first start
// and is started no more. Instances outlive every control process, as containers do.
import { createHash } from 'node:crypto';
import type { ProbeResult } from '../src/deployments/reconcile/health-checks.ts';
import { type Engine, EngineError, type EngineInstance, type InstanceSpec } from '../src/engines/engine.ts';
import type { Target } from '../src/traffic/data-plane.ts';
import type { Outside } from './outside.ts';
import type { Machine, World } from './world.ts';

export const imageKinds = [
  'ok',
  'slow',
  'errors',
  'rare',
  'lemon',
  'broken',
  'hangs',
  'clustered',
  'sickens',
  'gone',
  'crash',
  'never',
  'bad',
  'missing',
  'denied',
  'unstartable',
] as const;
export type ImageKind = (typeof imageKinds)[number];

export interface SimulatedInstance {
  set: string;
  spec: InstanceSpec;
  state: 'created' | 'running' | 'exited';
  exitCode: number | null;
  host: string;
  port: number;
  startedAt: number;
  /** When it begins to answer; null: never. */
  answersAt: number | null;
  /** From when to when it fails everything that it is asked. */
  sick: { from: number; to: number } | null;
}

export type Visited = 'good' | 'error' | 'no_answer' | 'hangs';

/** All instances have the address of this host, and ports that they are given. */
export const engineHost = '10.0.0.1';

/** Why an instance is no more. */
export type Ending = 'stopped' | 'forgotten' | 'exited';

const callMs = [1, 60] as const;
const slowCallMs = [100, 1500] as const;
const pullMs = [20, 3000] as const;
const givesUpAfterMs = 10_000;
/** How long an image of which nothing starts any more could be started. */
const goneAfterMs = 8000;

export class SimulatedEngine {
  readonly region: string;
  readonly instances = new Map<string, SimulatedInstance>();
  /** As ReplicaSets are, they are there until they are dropped. */
  readonly sets = new Set<string>();
  isDown = false;
  /** When it last came back, or something happened to it. */
  upSince = 0;
  /** Called before an instance is stopped because a control process asked for it. */
  onStop: (instance: SimulatedInstance, by: string) => void = () => {};
  onChange: () => void = () => {};
  onStart: (instance: SimulatedInstance) => void = () => {};
  readonly #world: World;
  readonly #outside: Outside;
  /** By set: when the first of its instances was started. */
  readonly #firstStart = new Map<string, number>();
  /** By set: the instance of it that fails, where one does. */
  readonly #lemons = new Map<string, string>();

  constructor(world: World, outside: Outside, region: string) {
    this.#world = world;
    this.#outside = outside;
    this.region = region;
  }

  /** The engine as this process reaches it. */
  from(machine: Machine): Engine {
    const call = <T>(label: string, effect: () => T, takesMs: readonly [number, number] = this.#callMs()) =>
      this.#outside.call(machine, {
        kind: 'engine',
        label: `${this.region}: ${label}`,
        effect: () => {
          if (this.isDown) throw unavailable();
          return effect();
        },
        takesMs,
        lost: unavailable,
        givesUpAfterMs,
      });
    return {
      kind: 'docker',
      publishesOn: [engineHost],
      probe: () => call('probe', () => {}),
      prepare: (image) => call(`pull ${image}`, () => this.#pull(image), pullMs),
      keep: (set, members) =>
        members.map((member) => call(`start ${member.id}`, () => this.#start(set.id, { ...set, ...member }))),
      list: () => call('list', () => this.#list()),
      stop: (id) => call(`stop ${id}`, () => this.#stop(id, machine.name)),
      drop: (set) => call(`drop ${set}`, () => this.#drop(set, machine.name)),
      sets: () => call('sets', () => [...this.sets]),
      logs: () => call('logs', () => [{ at: this.#world.now, stream: 'stderr' as const, text: 'a line' }]),
      close: async () => {},
    };
  }

  #callMs(): readonly [number, number] {
    return this.#world.random.chance(0.06) ? slowCallMs : callMs;
  }

  /** A health check that this process makes. */
  probe(machine: Machine, { host, port, timeoutMs }: { host: string; port: number; timeoutMs: number }) {
    return this.#outside
      .call<ProbeResult>(machine, {
        kind: 'probe',
        label: `probe ${port}`,
        effect: () => this.#answerAt(host, port),
        takesMs: [1, 40],
        lost: () => new Error('no answer in time'),
        givesUpAfterMs: timeoutMs,
      })
      .catch((error: Error): ProbeResult => ({ ok: false, fault: 'no_connection', message: error.message }));
  }

  find(id: string): SimulatedInstance | undefined {
    return this.instances.get(id);
  }

  /** Whether a visitor gets an answer, and a good one. */
  visit({ instance: id, host, port }: Target, bucket: number, chance: number): Visited {
    const instance = this.instances.get(id);
    if (!instance || instance.host !== host || instance.port !== port || !this.#answers(instance)) return 'no_answer';
    if (this.#isSick(instance)) return 'error';
    switch (kindOf(instance.spec.image)) {
      case 'errors':
        return chance < 0.5 ? 'error' : 'good';
      case 'rare':
        return chance < 0.08 ? 'error' : 'good';
      case 'lemon':
        return this.#lemons.get(instance.set) === id ? 'error' : 'good';
      case 'broken':
        return 'error';
      case 'hangs':
        return chance < 0.3 ? 'hangs' : 'good';
      case 'clustered':
        return bucket % 10 === 3 ? 'error' : 'good';
      default:
        return 'good';
    }
  }

  /** How long it has failed every health check by now; 0: it does not. */
  sickForMs(id: string): number {
    const instance = this.instances.get(id);
    return instance?.state === 'running' && this.#isSick(instance) ? this.#world.now - instance.sick!.from : 0;
  }

  #isSick({ sick }: SimulatedInstance): boolean {
    return sick !== null && sick.from <= this.#world.now && this.#world.now < sick.to;
  }

  /** Does not answer for some time. */
  goDown(ms: number): void {
    this.isDown = true;
    this.upSince = Number.POSITIVE_INFINITY;
    this.#world.after(null, ms, `${this.region} is back`, () => {
      this.isDown = false;
      this.upSince = this.#world.now;
    });
  }

  /** The engine restarts: what ran ends with it. */
  restart(): void {
    for (const instance of this.instances.values()) if (instance.state === 'running') this.exit(instance, 137);
  }

  exit(instance: SimulatedInstance, exitCode: number): void {
    if (instance.state !== 'running') return;
    instance.state = 'exited';
    instance.exitCode = exitCode;
    this.onChange();
  }

  forget(id: string): void {
    this.instances.delete(id);
    this.onChange();
  }

  #pull(image: string): { digest: string } {
    const kind = kindOf(image);
    if (kind === 'missing') throw new EngineError('image_not_found', `there is no image ${image}`);
    if (kind === 'denied') throw new EngineError('image_denied', `${image} is not for us`);
    return { digest: `sha256:${createHash('sha256').update(nameOf(image)).digest('hex')}` };
  }

  #start(set: string, spec: InstanceSpec): void {
    this.sets.add(set);
    const kind = kindOf(spec.image);
    if (kind === 'unstartable') throw new EngineError('start_failed', 'it cannot be started');
    const known = this.instances.get(spec.id);
    if (known && known.state !== 'created') return;
    const world = this.#world;
    const firstStart = this.#firstStart.get(set) ?? world.now;
    this.#firstStart.set(set, firstStart);
    if (kind === 'gone' && world.now - firstStart > goneAfterMs)
      throw new EngineError('start_failed', 'its image is not there any more');
    const port = spec.hostPort!;
    if ([...this.instances.values()].some((one) => one.port === port && one.state === 'running'))
      throw new EngineError('port_taken', `port ${port} is in use`);
    const answersAfterMs = kind === 'slow' ? world.random.between(1000, 6000) : world.random.between(20, 800);
    const answersAt = world.now + answersAfterMs;
    const sickFrom = answersAt + world.random.between(2000, 12_000);
    const instance: SimulatedInstance = {
      set,
      spec,
      state: 'running',
      exitCode: null,
      host: engineHost,
      port,
      startedAt: world.now,
      answersAt: kind === 'never' ? null : answersAt,
      sick: kind === 'sickens' ? { from: sickFrom, to: sickFrom + world.random.between(4000, 20_000) } : null,
    };
    this.onStart(instance);
    this.instances.set(spec.id, instance);
    if (!this.#lemons.has(set)) this.#lemons.set(set, spec.id);
    if (kind === 'gone') {
      const leftMs = Math.max(0, firstStart + goneAfterMs - world.now);
      world.after(null, leftMs + world.random.between(0, 8000), `${spec.id} ends`, () => this.exit(instance, 1));
    }
    if (kind === 'crash') {
      world.after(null, world.random.between(100, 4000), `${spec.id} ends`, () => this.exit(instance, 1));
    }
    this.onChange();
  }

  #list(): EngineInstance[] {
    return [...this.instances.values()].map(({ spec, state, exitCode, host, port }) => ({
      id: spec.id,
      project: spec.project,
      environment: spec.environment,
      revision: spec.revision,
      state,
      address: state === 'running' ? { host, port } : null,
      exitCode,
    }));
  }

  #stop(id: string, by: string): void {
    const instance = this.instances.get(id);
    if (!instance) return;
    this.onStop(instance, by);
    this.instances.delete(id);
    this.onChange();
  }

  #drop(set: string, by: string): void {
    for (const instance of this.instances.values()) if (instance.set === set) this.#stop(instance.spec.id, by);
    this.sets.delete(set);
    this.onChange();
  }

  #answers({ state, answersAt }: SimulatedInstance): boolean {
    return state === 'running' && answersAt !== null && answersAt <= this.#world.now;
  }

  #answerAt(host: string, port: number): ProbeResult {
    const instance = [...this.instances.values()].find(
      (one) => one.host === host && one.port === port && this.#answers(one),
    );
    if (!instance) return { ok: false, fault: 'no_connection', message: 'connection refused' };
    if (kindOf(instance.spec.image) === 'bad' || this.#isSick(instance))
      return { ok: false, fault: 'bad_answer', message: '/ answered 500' };
    return { ok: true };
  }
}

const unavailable = (): Error => new EngineError('unavailable', 'the engine does not answer');

/** Without registry, tag and digest. */
const nameOf = (image: string): string => image.replace(/^docker\.io\//, '').replace(/@.*$/, '');

export function kindOf(image: string): ImageKind {
  const kind = /sim\/([a-z]+)/.exec(image)?.[1] ?? 'ok';
  return (imageKinds as readonly string[]).includes(kind) ? (kind as ImageKind) : 'ok';
}

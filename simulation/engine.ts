// The engine of a region, and the registry behind it. What an image does is in its name: `sim/crash:7` ends soon after
// its start. Instances outlive every control process, as containers do.
import { createHash } from 'node:crypto';
import type { ProbeResult } from '../src/deployments/reconcile/health-checks.ts';
import { type Engine, EngineError, type EngineInstance, type InstanceSpec } from '../src/engines/engine.ts';
import type { Outside } from './outside.ts';
import type { Machine, World } from './world.ts';

export const imageKinds = [
  'ok',
  'slow',
  'errors',
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
}

/** Why an instance is no more. */
export type Ending = 'stopped' | 'forgotten' | 'exited';

const callMs = [1, 60] as const;
const slowCallMs = [100, 1500] as const;
const pullMs = [20, 3000] as const;
const givesUpAfterMs = 10_000;

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
  readonly #world: World;
  readonly #outside: Outside;
  #ports = 20_000;

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
      publishesOn: null,
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
  visit(id: string, host: string, port: number, chance: number): 'good' | 'error' | 'no_answer' {
    const instance = this.instances.get(id);
    if (!instance || instance.host !== host || instance.port !== port || !this.#answers(instance)) return 'no_answer';
    return kindOf(instance.spec.image) === 'errors' && chance < 0.5 ? 'error' : 'good';
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
    const answersAfterMs = kind === 'slow' ? world.random.between(1000, 6000) : world.random.between(20, 800);
    const instance: SimulatedInstance = {
      set,
      spec,
      state: 'running',
      exitCode: null,
      host: '10.0.0.1',
      // Ports are used again, as those of a machine are.
      port: 20_000 + (this.#ports++ % 40),
      startedAt: world.now,
      answersAt: kind === 'never' ? null : world.now + answersAfterMs,
    };
    while ([...this.instances.values()].some((one) => one.port === instance.port && one.state === 'running')) {
      instance.port++;
    }
    this.instances.set(spec.id, instance);
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
    if (kindOf(instance.spec.image) === 'bad') return { ok: false, fault: 'bad_answer', message: '/ answered 500' };
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

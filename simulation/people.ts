// What people do with the installation: they create, deploy, change, abort and delete, at random.
import type { Client } from './client.ts';
import type { ImageKind } from './engine.ts';
import type { OfEnvironment } from './facts.ts';
import type { Incident } from './faults.ts';
import type { Random } from './random.ts';
import type { World } from './world.ts';

interface Project {
  id: string;
  environments: Set<string>;
  /** By environment: the deployment that was acknowledged last. */
  deployments: Map<string, string>;
}

const imageWeights: Record<ImageKind, number> = {
  ok: 12,
  slow: 3,
  errors: 1,
  rare: 0.5,
  lemon: 0.5,
  broken: 1,
  hangs: 1,
  clustered: 1,
  sickens: 1.5,
  gone: 1,
  crash: 1.5,
  never: 1,
  bad: 1,
  missing: 0.7,
  denied: 0.3,
  unstartable: 0.7,
};

type EnvironmentOperation =
  | 'tune'
  | 'deploy'
  | 'promote'
  | 'pause'
  | 'resume'
  | 'abort'
  | 'rollback'
  | 'deleteEnvironment'
  | 'read'
  | 'wait';

/** While nothing is rolled out, and while something is. */
const whenIdle: Record<EnvironmentOperation, number> = {
  tune: 2,
  deploy: 12,
  promote: 0.2,
  pause: 0.2,
  resume: 0.2,
  abort: 0.2,
  rollback: 3,
  deleteEnvironment: 0.5,
  read: 1,
  wait: 4,
};
const whenBusy: Record<EnvironmentOperation, number> = {
  tune: 1,
  deploy: 0.7,
  promote: 2,
  pause: 1,
  resume: 1,
  abort: 1,
  rollback: 0.3,
  deleteEnvironment: 0.2,
  read: 0.5,
  wait: 10,
};

/** What patient people try out, and what of it their canaries are made of: what a run at random would hardly come across. */
const plots = {
  any: null,
  approval: ['ok', 'slow'],
  quiet: ['ok', 'rare', 'errors', 'broken', 'broken'],
  lemon: ['lemon'],
  failing: ['broken', 'errors', 'hangs', 'clustered', 'ok'],
  sick: ['sickens', 'ok'],
  orphaned: ['ok'],
} as const satisfies Record<string, readonly ImageKind[] | null>;
type Plot = keyof typeof plots;

/** Those whose point is hard to come to are tried more often. */
const plotWeights: Record<Plot, number> = {
  any: 1,
  approval: 1,
  quiet: 2,
  lemon: 1,
  failing: 1,
  sick: 1,
  orphaned: 2,
};

/** What the first revision is made of, where it is not sound. */
const firstIn: Partial<Record<Plot, ImageKind>> = { orphaned: 'gone', sick: 'sickens' };

/** What would end a plot before it comes to its point. */
const sparedIn: Partial<Record<Plot, readonly Incident[]>> = {
  orphaned: ['instance_exits', 'engine_restart', 'engine_forgets'],
  sick: ['instance_exits', 'engine_restart', 'engine_forgets'],
};

/** People who let a rollout go on by itself, mostly. */
const whenWatching: Record<EnvironmentOperation, number> = {
  ...whenBusy,
  tune: 0.2,
  deploy: 0.2,
  promote: 0.3,
  pause: 0.3,
  resume: 1,
  abort: 0.6,
  rollback: 0.1,
  deleteEnvironment: 0.05,
  wait: 20,
};

/** By plot, where it is not that. */
const whenWatchingIn: Partial<Record<Plot, Record<EnvironmentOperation, number>>> = {
  approval: { ...whenWatching, promote: 4, pause: 2, resume: 6, wait: 8 },
  orphaned: { ...whenWatching, abort: 5, promote: 0, wait: 12 },
};

const otherOperations = {
  createProject: 1,
  deleteProject: 0.4,
  createEnvironment: 3,
  createWebhook: 3,
  changeWebhook: 2,
  deleteWebhook: 0.5,
  createAlertRule: 2,
} as const;

const maxProjects = 3;
const maxEnvironments = 2;
const maxWebhooks = 4;

export class People {
  isActive = true;
  readonly #world: World;
  readonly #random: Random;
  readonly #client: Client;
  readonly #isBusy: (of: OfEnvironment) => boolean;
  readonly #projects: Project[] = [];
  readonly #webhooks: string[] = [];
  /** They leave rollouts alone, and do one thing every few seconds. */
  readonly #arePatient: boolean;
  readonly #plot: Plot;

  /** `isBusy`: whether a deployment is in progress there. */
  constructor(world: World, client: Client, isBusy: (of: OfEnvironment) => boolean) {
    this.#isBusy = isBusy;
    this.#world = world;
    this.#random = world.random;
    this.#client = client;
    this.#arePatient = world.random.chance(0.7);
    this.#plot = this.#arePatient ? world.random.weighted(plotWeights) : 'any';
  }

  /** What must not happen by itself meanwhile. */
  get spared(): readonly Incident[] {
    return sparedIn[this.#plot] ?? [];
  }

  /** How many visitors come to an environment each time. */
  get visitorsAtOnce(): number {
    return this.#plot === 'quiet' && this.isActive ? Number(this.#random.chance(0.25)) : 6;
  }

  start(): void {
    const mostMs = this.#arePatient && this.#projects.length > 0 ? 2500 : 300;
    this.#world.after(null, this.#random.between(5, mostMs), 'somebody', () => {
      if (!this.isActive) return;
      this.#act();
      this.start();
    });
  }

  #act(): void {
    const project = this.#random.pick(this.#projects);
    const environment = project && this.#random.pick([...project.environments]);
    if (!project) this.#createProject();
    else if (environment === undefined || this.#random.chance(0.12)) this.#actOn(project);
    else this.#actIn(project, environment);
  }

  #actOn(project: Project): void {
    const acts: Record<keyof typeof otherOperations, () => void> = {
      createProject: () => this.#createProject(),
      deleteProject: () => this.#deleteProject(project),
      createEnvironment: () => this.#createEnvironment(project),
      createWebhook: () => this.#createWebhook(),
      changeWebhook: () => this.#changeWebhook(),
      deleteWebhook: () => this.#deleteWebhook(),
      createAlertRule: () => this.#createAlertRule(project),
    };
    acts[this.#random.weighted(otherOperations)]();
  }

  #actIn(project: Project, environment: string): void {
    const acts: Record<EnvironmentOperation, () => void> = {
      tune: () => this.#tune(project, environment),
      deploy: () => this.#deploy(project, environment),
      rollback: () => this.#rollback(project, environment),
      promote: () => this.#command(project, environment, 'promote'),
      pause: () => this.#command(project, environment, 'pause'),
      resume: () => this.#command(project, environment, 'resume'),
      abort: () => this.#command(project, environment, 'abort'),
      deleteEnvironment: () => this.#deleteEnvironment(project, environment),
      read: () => this.#client.send({ route: 'deployments.list', params: { id: project.id } }),
      wait: () => {},
    };
    const isBusy = this.#isBusy({ project_id: project.id, environment });
    const busy = this.#arePatient ? (whenWatchingIn[this.#plot] ?? whenWatching) : whenBusy;
    acts[this.#random.weighted(isBusy ? busy : whenIdle)]();
  }

  #createProject(): void {
    if (this.#projects.length >= (this.#arePatient ? 1 : maxProjects)) return;
    const write = this.#client.mark('project');
    this.#client.write(write, { route: 'projects.create', body: { name: write.mark } }, ({ body }) => {
      write.projectId = body.id;
      const project: Project = { id: body.id, environments: new Set(), deployments: new Map() };
      this.#projects.push(project);
      this.#tune(project, 'production');
    });
  }

  #deleteProject(project: Project): void {
    this.#client.willDelete(project.id);
    this.#projects.splice(this.#projects.indexOf(project), 1);
    this.#client.send({ route: 'projects.delete', params: { id: project.id } });
  }

  #createEnvironment(project: Project): void {
    if (project.environments.size >= maxEnvironments) return;
    const name = `e${this.#random.whole(1, 4)}`;
    const request = { route: 'environments.create', params: { id: project.id }, body: { name, ...this.#settings() } };
    this.#client.send(request, (response) => {
      if (response?.status === 201) this.#learn(project, name, response.version);
    });
  }

  #tune(project: Project, name: string): void {
    const params = { id: project.id, name };
    this.#client.send({ route: 'environments.update', params, body: this.#settings() }, (response) => {
      if (response?.status === 200) this.#learn(project, name, response.version);
    });
  }

  /** Only environments with settings of ours are used: the defaults wait for up to a day. */
  #learn(project: Project, name: string, version: number | null): void {
    project.environments.add(name);
    this.#client.promise('environment', `${project.id} ${name}`, version);
  }

  #settings() {
    const random = this.#random;
    return {
      replicas: this.#plot === 'lemon' ? 3 : this.#plot === 'orphaned' ? 1 : random.whole(1, 3),
      drain_s: random.whole(0, 3),
      auto_rollback: random.chance(0.8),
      health_check: {
        interval_s: 1,
        timeout_s: 1,
        healthy_after: random.whole(1, 2),
        start_timeout_s: this.#plot === 'sick' ? 20 : random.whole(4, 15),
      },
      canary: {
        advance:
          this.#plot === 'approval' || this.#plot === 'orphaned'
            ? ('manual' as const)
            : random.pick(this.#arePatient ? (['auto'] as const) : (['auto', 'manual'] as const)),
        bake_s: this.#arePatient && this.#plot !== 'approval' ? random.whole(3, 8) : random.whole(1, 4),
        steps: random.chance(0.5) ? [50] : [],
        min_requests: random.whole(0, 10),
        max_error_rate: 0.2,
        approval_timeout_s: random.whole(5, 20),
        warmup_s: random.pick([0, 0, 2]),
        on_inconclusive:
          this.#plot === 'quiet' ? ('promote' as const) : random.pick(['promote', 'promote', 'abort', 'hold'] as const),
      },
    };
  }

  #deploy(project: Project, environment: string): void {
    const random = this.#random;
    const isFirst = !project.deployments.has(environment);
    const kinds = plots[this.#plot];
    const strategy =
      kinds !== null
        ? isFirst
          ? 'rolling'
          : 'canary'
        : random.pick(
            this.#arePatient
              ? (['rolling', 'canary', 'canary', 'canary'] as const)
              : (['rolling', 'canary', 'blue_green'] as const),
          );
    const first = firstIn[this.#plot] ?? 'ok';
    const kind = kinds === null ? random.weighted(imageWeights) : isFirst ? first : random.pick<ImageKind>(kinds);
    const write = this.#client.mark('deployment', project.id, environment);
    const body = {
      environment,
      image: `sim/${kind}:${random.whole(1, 9)}`,
      strategy,
      note: write.mark,
      ...(strategy === 'canary' && {
        canary_percent: this.#plot === 'lemon' ? 60 : random.pick(this.#plot === 'quiet' ? [10, 30] : [5, 10, 30, 50]),
      }),
    };
    this.#client.write(write, { route: 'deployments.create', params: { id: project.id }, body }, (response) => {
      project.deployments.set(environment, response.body.id);
      this.#client.promise('deployment', response.body.id, response.version);
    });
  }

  #rollback(project: Project, environment: string): void {
    const write = this.#client.mark('deployment', project.id, environment);
    const params = { id: project.id, name: environment };
    const request = { route: 'environments.rollback', params, body: { reason: write.mark } };
    this.#client.write(write, request, (response) => {
      project.deployments.set(environment, response.body.id);
    });
  }

  #command(project: Project, environment: string, verb: 'promote' | 'pause' | 'resume' | 'abort'): void {
    const dpl = project.deployments.get(environment);
    if (!dpl) return;
    this.#client.send({ route: `deployments.${verb}`, params: { id: project.id, dpl } }, (response) => {
      if (response?.status === 200) this.#client.promise('deployment', dpl, response.version);
    });
  }

  #deleteEnvironment(project: Project, name: string): void {
    if (name === 'production') return;
    this.#client.willDelete(`${project.id} ${name}`);
    project.environments.delete(name);
    this.#client.send({ route: 'environments.delete', params: { id: project.id, name } });
  }

  /** One that fires soon. */
  #createAlertRule({ id, environments }: Project): void {
    const environment = this.#random.pick([...environments]);
    if (environment === undefined) return;
    const measured = this.#random.pick([
      { metric: 'healthy_instances', comparator: 'lt', threshold: 3 },
      { metric: 'error_rate', comparator: 'gt', threshold: 0.05 },
      { metric: 'restarts', comparator: 'gt', threshold: 0 },
    ] as const);
    const times = { window_s: this.#random.whole(10, 20), for_s: this.#random.whole(0, 3) };
    const name = `rule ${this.#random.whole(1, 1000)}`;
    const on_canary = this.#random.pick(['abort', 'none', 'none'] as const);
    const body = { environment, name, severity: 'warning', on_canary, ...measured, ...times };
    this.#client.send({ route: 'alert-rules.create', params: { id }, body });
  }

  #createWebhook(): void {
    if (this.#webhooks.length >= maxWebhooks) return;
    const write = this.#client.mark('webhook');
    const ordering = this.#random.pick(['none', 'strict'] as const);
    const body = { url: `http://127.0.0.1/${write.mark}`, events: ['*'], ordering, description: write.mark };
    this.#client.write(write, { route: 'webhooks.create', body }, (response) => {
      this.#webhooks.push(response.body.id);
    });
  }

  #changeWebhook(): void {
    const whk = this.#random.pick(this.#webhooks);
    const state = this.#random.pick(['enabled', 'paused'] as const);
    if (whk !== undefined) this.#client.send({ route: 'webhooks.update', params: { whk }, body: { state } });
  }

  #deleteWebhook(): void {
    const whk = this.#random.pick(this.#webhooks);
    if (whk === undefined) return;
    this.#client.willDelete(whk);
    this.#webhooks.splice(this.#webhooks.indexOf(whk), 1);
    this.#client.send({ route: 'webhooks.delete', params: { whk } });
  }
}

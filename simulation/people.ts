// What people do with the installation: they create, deploy, change, abort and delete, at random.
import type { Client } from './client.ts';
import type { ImageKind } from './engine.ts';
import type { OfEnvironment } from './facts.ts';
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
  errors: 2,
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

const otherOperations = {
  createProject: 1,
  deleteProject: 0.4,
  createEnvironment: 3,
  createWebhook: 3,
  changeWebhook: 2,
  deleteWebhook: 0.5,
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

  /** `isBusy`: whether a deployment is in progress there. */
  constructor(world: World, client: Client, isBusy: (of: OfEnvironment) => boolean) {
    this.#isBusy = isBusy;
    this.#world = world;
    this.#random = world.random;
    this.#client = client;
  }

  start(): void {
    this.#world.after(null, this.#random.between(5, 300), 'somebody', () => {
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
    acts[this.#random.weighted(isBusy ? whenBusy : whenIdle)]();
  }

  #createProject(): void {
    if (this.#projects.length >= maxProjects) return;
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
      replicas: random.whole(1, 3),
      drain_s: random.whole(0, 3),
      auto_rollback: random.chance(0.8),
      health_check: {
        interval_s: 1,
        timeout_s: 1,
        healthy_after: random.whole(1, 2),
        start_timeout_s: random.whole(4, 15),
      },
      canary: {
        advance: random.pick(['auto', 'manual'] as const),
        bake_s: random.whole(1, 4),
        steps: random.chance(0.5) ? [50] : [],
        min_requests: random.whole(0, 10),
        max_error_rate: 0.2,
        approval_timeout_s: random.whole(5, 20),
        warmup_s: 0,
      },
    };
  }

  #deploy(project: Project, environment: string): void {
    const random = this.#random;
    const strategy = random.pick(['rolling', 'canary', 'blue_green'] as const);
    const write = this.#client.mark('deployment', project.id, environment);
    const body = {
      environment,
      image: `sim/${random.weighted(imageWeights)}:${random.whole(1, 9)}`,
      strategy,
      note: write.mark,
      ...(strategy === 'canary' && { canary_percent: random.pick([5, 10, 30]) }),
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

// The processes of the service: one control process, and the router workers. Starting, replacing and ending them is here;
// when to do which is up to the supervisor.
import { existsSync } from 'node:fs';
import type { Config } from '../config.ts';
import { readOrMakeSecretKey } from '../data-dir.ts';
import { entryPath } from '../lib/install.ts';
import { createSeal, type Seal } from '../lib/seal.ts';
import { haproxyFilesOf } from '../traffic/haproxy/haproxy-files.ts';
import { stopMaster } from '../traffic/haproxy/haproxy-process.ts';
import { agentSocketPath, tablePathIn } from '../traffic/worker/agent-protocol.ts';
import { routingDirOf, workerSettings } from '../wiring/worker-settings.ts';
import { Child, type ChildOptions } from './child.ts';
import { endStandin } from './end-standin.ts';
import { replaceBeside, replaceControl } from './hand-over.ts';
import { Keeper } from './keeper.ts';
import type { Sockets } from './sockets.ts';
import type { SupervisorLog } from './supervisor-log.ts';
import type { ControlOrder, ControlSettings } from './supervisor-protocol.ts';
import { supervisorSocketPath } from './supervisor-socket.ts';

type Env = Record<string, string | undefined>;

const controlEntry = entryPath('control');
const workerEntry = entryPath('router-worker');

/**
 * V8 would let the memory of one that has much to do for a moment grow by far more than it uses. `npm run attack -- tenant
 * logs` measures by how much.
 */
const controlFlags = ['--max-semi-space-size=8', '--heap-growing-percent=30'];

/** Workers hand their last measurements to the control process, which therefore ends after them; but not much later. */
const workersFirstMs = 5000;

interface FleetParts {
  config: Config;
  sockets: Sockets;
  env: Env;
  log: SupervisorLog;
  /** Which data plane was chosen, and why; null: this is no router. */
  routerLine: string | null;
}

export class Fleet {
  readonly #parts: FleetParts;
  readonly #control: Keeper;
  readonly #workers: { keeper: Keeper; start: () => Child }[];
  readonly #agentSocket: string;
  /** null: there are no workers. It is read here, so that parent and children cannot both make a key at the first start. */
  readonly #seal: Seal | null;
  readonly #children = new Set<Child>();

  constructor(parts: FleetParts) {
    const { config, log } = parts;
    this.#parts = parts;
    this.#agentSocket = agentSocketPath(config.dataDir);
    const isRouter = config.roles.includes('router') && config.haproxy === null;
    this.#seal = isRouter ? createSeal(config.secretKey ?? readOrMakeSecretKey(config.dataDir)) : null;
    const watchdogMs = config.watchdogS * 1000;
    this.#control = new Keeper(() => this.#startControl({ waits: false }), log, watchdogMs);
    this.#workers = Array.from({ length: isRouter ? config.routerWorkers : 0 }, (_, index) => {
      const start = () => this.#startWorker(`w${index + 1}`);
      return { keeper: new Keeper(start, log, watchdogMs), start };
    });
  }

  /** The first one is kept running only from when it is ready: if that never happens, the service has failed to start. */
  async startControl(): Promise<void> {
    const first = this.#startControl({ waits: false });
    await first.waitFor('ready').catch(async (error) => {
      throw Object.assign(error, { exitCode: (await first.ended).exitCode ?? 1 });
    });
    this.#control.keep(first);
  }

  /** After the first one has failed. Resolves when one is ready; each that fails is started again. */
  async retryControl(): Promise<void> {
    this.#control.start();
    await this.#control.firstReady;
  }

  /** Resolves when all of them accept requests, or right away where there are none. */
  async startWorkers(): Promise<void> {
    for (const { keeper } of this.#workers) keeper.start();
    await Promise.all(this.#workers.map(({ keeper }) => keeper.firstReady));
  }

  /** Whether the router workers have a table to go by if the control process gives them none. */
  get servesWithoutControl(): boolean {
    return this.#workers.length > 0 && existsSync(tablePathIn(routingDirOf(this.#parts.config.dataDir)));
  }

  greet(): void {
    this.#control.current?.send({ order: 'greet' } satisfies ControlOrder);
  }

  /** Replaces each by what is on disk now, one after another. Rejects with ChildFailed; the others then stay as they are. */
  async replaceAll(): Promise<void> {
    const { config, sockets } = this.#parts;
    const drainMs = config.drainS * 1000;
    await replaceControl({
      keeper: this.#control,
      startWaiting: () => this.#startControl({ waits: true }),
      mayOverlap: config.databaseUrl !== null,
      apiSocket: sockets.of.api!.handle,
      drainMs,
    });
    for (const { keeper, start } of this.#workers) await replaceBeside(keeper, start, drainMs);
  }

  /** Where systemd holds the sockets, the next service may start while requests under way still end in these processes. */
  async stop(): Promise<void> {
    const { config, sockets } = this.#parts;
    const control = this.#control.current;
    this.#control.close();
    for (const { keeper } of this.#workers) keeper.close();
    const ending = (children: Child[]) => {
      for (const child of children) child.kill('SIGTERM');
      return Promise.all(children.map((child) => child.endWithin(config.drainS * 1000)));
    };
    const isWorker = (child: Child) => child.entry === workerEntry;
    const workersEnded = ending([...this.#children].filter(isWorker));
    const late = new Promise((resolve) => setTimeout(resolve, workersFirstMs).unref());
    await Promise.race([workersEnded, late]);
    const othersEnded = ending([...this.#children].filter((child) => !isWorker(child)));
    if (sockets.outlive && control) await control.waitFor('released').catch(() => {});
    else await Promise.all([workersEnded, othersEnded]);
    if (config.haproxy !== null && !sockets.outlive)
      await stopMaster(haproxyFilesOf(config.dataDir), config.drainS * 1000);
    if (!sockets.outlive) await endStandin(config.dataDir);
  }

  /** Without waiting for requests. */
  async stopNow(): Promise<void> {
    this.killAll();
    await endStandin(this.#parts.config.dataDir);
  }

  killAll(): void {
    for (const child of this.#children) child.kill('SIGKILL');
  }

  /** This process may end before they do. */
  leaveBehind(): void {
    for (const child of this.#children) child.leaveBehind();
  }

  #startControl({ waits }: { waits: boolean }): Child {
    const { of, outlive } = this.#parts.sockets;
    const ports = of.router && { http: of.router.port, tls: of.routerTls?.port ?? null };
    const orders: ControlSettings = {
      routerWorkers: ports && { agentSocket: this.#agentSocket, ports },
      routerLine: this.#parts.routerLine,
      waits,
      supervisorSocket: supervisorSocketPath(this.#parts.config.dataDir),
      socketsOutlive: outlive,
    };
    const env = { SLUICE_CONTROL: JSON.stringify(orders) };
    return this.#start({
      name: 'the control process',
      entry: controlEntry,
      flags: controlFlags,
      env,
      sockets: [of.api!.fd],
    });
  }

  #startWorker(name: string): Child {
    const { config, sockets } = this.#parts;
    const place = {
      name,
      workers: config.routerWorkers,
      agentSocket: this.#agentSocket,
      supervisorSocket: supervisorSocketPath(config.dataDir),
      drainS: config.drainS,
    };
    return this.#start({
      name: `router worker ${name}`,
      entry: workerEntry,
      env: { SLUICE_WORKER: JSON.stringify(workerSettings(config, this.#seal!, place)) },
      sockets: [sockets.of.router!.fd, sockets.of.routerTls!.fd],
    });
  }

  #start({ env, ...options }: ChildOptions): Child {
    const child = new Child({ ...options, env: { ...this.#parts.env, ...env } });
    this.#children.add(child);
    void child.ended.then(() => this.#children.delete(child));
    return child;
  }
}

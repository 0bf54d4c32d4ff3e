// HAProxy as the data plane. It runs beside this process and outlives it; everything it needs lies in its folder, so a
// start of either side goes on where the other is.
import { createHash } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import {
  type CertificateSource,
  type DataPlane,
  type EnvironmentRoutes,
  type MeasuredBatch,
  type RouterObserver,
  type RouterPorts,
  type RouterState,
  routesKey,
} from '../data-plane.ts';
import {
  ensureTicketKeys,
  HaproxyCertificates,
  startChallengeResponder,
  writeTicketKey,
} from './haproxy-certificates.ts';
import { configText, type HaproxySettings } from './haproxy-config.ts';
import { type HaproxyFiles, makeFolders, readOrEmpty, replaceFile } from './haproxy-files.ts';
import {
  currentWorker,
  isAlive,
  ReplacedWorkers,
  reload,
  replacedWorkers,
  runningMaster,
  startMaster,
} from './haproxy-process.ts';
import { HaproxyRoutes } from './haproxy-routes.ts';
import { ask } from './haproxy-socket.ts';
import { RequestLog, readSessions } from './request-log.ts';

interface HaproxyOptions {
  program: string;
  files: HaproxyFiles;
  settings: HaproxySettings;
  ports: RouterPorts;
  certificates: CertificateSource | null;
  clock: Clock;
  log: Log;
}

const watchMs = 1000;
/** Between the end of a connection's idle time and the last request that came over it. */
const graceMs = 5000;

export async function openHaproxy(options: HaproxyOptions): Promise<DataPlane> {
  await makeFolders(options.files);
  const plane = new Haproxy(options);
  await plane.open();
  return plane;
}

class Haproxy implements DataPlane {
  readonly #options: HaproxyOptions;
  readonly #files: HaproxyFiles;
  readonly #routes: HaproxyRoutes;
  readonly #certificates: HaproxyCertificates | null;
  readonly #logs = new Map<string, RequestLog>();
  readonly #replaced: ReplacedWorkers;
  /** Those that are in the file. */
  #workers: string[] = [];
  /** Those that ended while no process of ours ran: their rows would hold up deployments until their leases are over. */
  #endedUnseen: string[] = [];
  #observer: RouterObserver = { joining: async () => {}, catchUp: async () => {}, moved: () => {}, left: () => {} };
  /** One after another: changes, reloads, checks. */
  #last: Promise<void> = Promise.resolve();
  /** The one that is kept up to date; null: none answers, and the next check finds one and compares all it has. */
  #worker: string | null = null;
  /** The latest table, and what of it is not in the files yet. */
  #latest = 0;
  readonly #unwritten = new Map<string, EnvironmentRoutes>();
  /** The table that the files have, which HAProxy starts with. */
  #written = 0;
  /** The table that every request follows, also in a worker that did not answer. */
  #version = 0;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;
  #challenges: { stop(): Promise<void> } | null = null;

  constructor(options: HaproxyOptions) {
    const { files } = options;
    this.#options = options;
    this.#files = files;
    this.#replaced = new ReplacedWorkers(options.settings.limits.keepAliveMs + graceMs);
    this.#routes = new HaproxyRoutes(files, () => this.#now());
    this.#certificates = options.certificates && new HaproxyCertificates(files, options.certificates, options.log);
  }

  /** Goes on with a HAProxy that runs already. */
  async open(): Promise<void> {
    await ensureTicketKeys(this.#files.ticketKeys);
    this.#workers = (await readOrEmpty(this.#files.workers)).split('\n').filter((id) => id !== '');
    this.#endedUnseen = this.#workers.filter((id) => !isAlive(id));
    await this.#routes.open();
    await this.#certificates?.open();
    this.#challenges = await startChallengeResponder(
      this.#files.challengeSocket,
      this.#options.certificates,
      this.#options.log,
    );
    if (runningMaster(this.#files) === null) return;
    this.#version = Number(await readOrEmpty(this.#files.version));
    // One that does not answer may still serve. It is asked again at every check, and nothing else waits for it.
    await this.#adopt().catch((error) => {
      this.#worker = null;
      this.#options.log.warn({ err: error }, 'HAProxy runs and does not answer; it is asked again');
    });
  }

  async #adopt(): Promise<void> {
    await this.#run();
    // Which tables these have is not known any more.
    for (const id of await replacedWorkers(this.#files)) this.#replaced.add({ id, version: 0 }, this.#now());
    this.#options.log.info({ router: this.#worker }, 'HAProxy runs already');
  }

  observe(observer: RouterObserver): void {
    this.#observer = observer;
    for (const id of this.#endedUnseen.splice(0)) observer.left(id);
  }

  async load(version: number, batches: AsyncIterable<EnvironmentRoutes[]>): Promise<void> {
    if (this.#worker) await this.#observer.joining({ id: this.#worker, version: this.#version });
    const loaded = new Set<string>();
    for await (const batch of batches) {
      for (const routes of batch) loaded.add(routesKey(routes));
      await this.#enqueue(() => this.#apply(batch));
    }
    await this.#enqueue(async () => {
      const others = [...this.#routes.environments].filter(([key]) => !loaded.has(key));
      await this.#apply(others.map(([, routes]) => ({ ...routes, hosts: [], shares: [] })));
      await this.#routes.writeUnknown();
      await this.#inRunning(() => this.#routes.dropUnknown());
      this.#unwritten.clear();
      this.#latest = version;
      await this.#reached(version);
    });
    // An earlier process may have left some whose names were deleted since.
    this.#certificates?.refreshAll();
  }

  change(version: number, environments: EnvironmentRoutes[]): void {
    for (const routes of environments) this.#unwritten.set(routesKey(routes), routes);
    this.#latest = version;
    this.#enqueue(() => this.#applyChanges()).catch((error) =>
      this.#options.log.error({ err: error }, 'the table for HAProxy could not be written; it is tried again'),
    );
  }

  async #applyChanges(): Promise<void> {
    const [version, changes] = [this.#latest, [...this.#unwritten]];
    await this.#apply(changes.map(([, routes]) => routes));
    for (const [key, routes] of changes) if (this.#unwritten.get(key) === routes) this.#unwritten.delete(key);
    await this.#reached(version);
  }

  #enqueue(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }

  async #apply(environments: EnvironmentRoutes[]): Promise<void> {
    if (environments.length === 0) return;
    // Names that nobody has any more go from HAProxy, too.
    const before = environments.flatMap((routes) => this.#routes.environments.get(routesKey(routes))?.hosts ?? []);
    await this.#routes.write(environments);
    await this.#inRunning(async () => {
      if (this.#routes.lackBackends) await this.#reload();
      await this.#routes.change(environments);
    });
    this.#routes.settle(environments);
    const hosts = [...before, ...environments.flatMap((routes) => routes.hosts)];
    this.#certificates?.refresh(hosts.map(({ name }) => name));
  }

  /** Where it fails, what HAProxy has is not known: it keeps what it had, or a part, until it is compared with the files. */
  async #inRunning(change: () => Promise<void>): Promise<void> {
    if (this.#worker === null) return;
    await change().catch((error) => {
      this.#options.log.error({ err: error }, 'HAProxy could not be changed; it is tried again');
      this.#worker = null;
    });
  }

  /** The files have this version, and so has every worker that is kept up to date. */
  async #reached(version: number): Promise<void> {
    this.#written = version;
    if (this.#worker === null && runningMaster(this.#files) !== null) return;
    await replaceFile(this.#files.version, String(version));
    this.#version = version;
    this.#observer.moved();
  }

  async listen(): Promise<RouterPorts> {
    if (runningMaster(this.#files) === null) await this.#enqueue(() => this.#start());
    this.#scheduleCheck();
    return this.#options.ports;
  }

  /** One at a time: a check of a HAProxy that hangs takes longer than the time between two. */
  #scheduleCheck(): void {
    this.#timer = setTimeout(async () => {
      await this.#enqueue(() => this.#check()).catch((error) =>
        this.#options.log.error({ err: error }, 'HAProxy could not be checked'),
      );
      if (!this.#isStopped) this.#scheduleCheck();
    }, watchMs);
  }

  async #start(): Promise<void> {
    if (this.#worker !== null) return;
    await this.#run();
    await this.#observer.joining({ id: this.#worker!, version: this.#version });
  }

  /** Starts HAProxy if it does not run, and has it load its files if it runs with others. */
  async #run(): Promise<void> {
    const text = configText(this.#options.settings, this.#files);
    const hash = createHash('sha256').update(text).digest('hex');
    await replaceFile(this.#files.config, text);
    if (runningMaster(this.#files) === null) await startMaster(this.#options.program, this.#files);
    else if ((await readOrEmpty(this.#files.hash)) !== hash) await reload(this.#files);
    await replaceFile(this.#files.hash, hash);
    await this.#attach();
    if (!this.#routes.lackBackends) return;
    await this.#reload().catch((error) => {
      this.#worker = null;
      throw error;
    });
  }

  async #reload(): Promise<void> {
    await reload(this.#files);
    await this.#attach();
  }

  async #attach(): Promise<void> {
    const worker = await currentWorker(this.#files);
    if (this.#worker !== null && this.#worker !== worker) {
      this.#replaced.add({ id: this.#worker, version: this.#version }, this.#now());
      await this.#observer.joining({ id: worker, version: this.#version });
    }
    this.#followLog(worker);
    await this.#noteWorker(worker);
    await this.#routes.attach();
    this.#worker = worker;
    this.#certificates?.attach();
  }

  async #noteWorker(worker: string): Promise<void> {
    if (this.#workers.includes(worker)) return;
    this.#workers = [...this.#workers.filter(isAlive), worker];
    await replaceFile(this.#files.workers, this.#workers.map((id) => `${id}\n`).join(''));
  }

  /** The log of a worker that is being replaced goes on until its last request has ended. */
  #followLog(worker: string): void {
    const log = this.#logs.get(worker);
    if (log && !log.hasEnded) return;
    // What the worker still has in memory is counted again, to the same numbers.
    this.#logs.set(worker, new RequestLog(worker, this.#files, this.#options.clock));
  }

  /** Starts HAProxy again if it has ended, and clears away what is no longer needed. */
  async #check(): Promise<void> {
    const running = runningMaster(this.#files) !== null;
    if (!running) {
      this.#options.log.warn('HAProxy has ended and is started again');
      if (this.#worker) this.#observer.left(this.#worker);
      this.#worker = null;
    }
    if (this.#worker === null) {
      await this.#start();
      await this.#inRunning(() => this.#routes.compare());
      await this.#reached(this.#written);
    }
    if (this.#unwritten.size > 0) await this.#applyChanges();
    if (this.#worker) this.#followLog(this.#worker);
    await this.#noteWaiting();
    this.#certificates?.retry();
    await this.#routes.tidy();
    for (const id of this.#replaced.takeEnded(this.#now())) this.#observer.left(id);
  }

  /** Requests of canaries, and of what they are compared with, that wait for an answer: they are in no log yet. */
  async #noteWaiting(): Promise<void> {
    const backends = this.#routes.canaryBackends();
    const log = this.#worker === null ? undefined : this.#logs.get(this.#worker);
    if (backends.size === 0 || !log) return;
    const sessions = readSessions(await ask(this.#files.adminSocket, 'show sess'));
    for (const [, use] of backends) {
      const own = sessions.filter(({ backend, standIn }) => {
        const asked = backends.get(backend);
        return asked && routesKey(asked) === routesKey(use) && (standIn ?? asked.revision) === use.revision;
      });
      log.setWaiting(
        use,
        own.map(({ ageMs }) => ageMs),
      );
    }
  }

  #now(): number {
    return this.#options.clock.now();
  }

  routers(): RouterState[] {
    const current = this.#worker === null ? [] : [{ id: this.#worker, version: this.#version }];
    return [...current, ...this.#replaced.states()];
  }

  takeMeasurements(): MeasuredBatch[] {
    const batches: MeasuredBatch[] = [];
    for (const [id, log] of this.#logs) {
      const taken = log.take();
      batches.push(...taken);
      if (taken.length === 0 && log.hasEnded) this.#logs.delete(id);
    }
    return batches;
  }

  expireCertificates(names: string[] | null): void {
    if (names === null) this.#certificates?.refreshAll();
    else this.#certificates?.refresh(names);
  }

  setTicketKey(key: Buffer): void {
    void this.#enqueue(async () => {
      const command = await writeTicketKey(this.#files.ticketKeys, key);
      if (command && this.#worker && this.#options.settings.https) await ask(this.#files.adminSocket, command);
    });
  }

  /** HAProxy goes on: the next process finds it again, or the supervisor ends it. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#last;
    await this.#certificates?.stop();
    for (const log of this.#logs.values()) log.close();
    await this.#challenges?.stop();
  }
}

// Worker processes as a data plane, seen from the agent. They outlive it: it serves a unix socket, to which they connect
// whenever it is there. Each gets the whole table once and then changes, and reports which version it has in force; what
// they measured stays with them until it is stored. The table and the certificates in use are also written to disk.
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { chmod, mkdir, rename } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
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
import { type FromWorker, onMessages, sendMessage, type ToWorker } from './agent-protocol.ts';
import { type DiskCertificates, DiskTableWriter } from './routing-files.ts';

interface WorkerPlaneOptions {
  socketPath: string;
  routingDir: string;
  /** Where the workers listen, as their supervisor says. */
  ports: RouterPorts;
  source: CertificateSource;
  disk: DiskCertificates;
  log: Log;
}

const pingEveryMs = 1000;

export class WorkerPlane implements DataPlane {
  readonly #options: WorkerPlaneOptions;
  readonly #server: Server;
  readonly #writer: DiskTableWriter;
  #table: HeldTable = { version: 0, environments: new Map() };
  #observer: RouterObserver | null = null;
  readonly #sockets = new Set<Socket>();
  readonly #workers = new Map<string, WorkerConnection>();
  /** Those that lost their connection, or the agent before this one had, may come back, or have ended. */
  readonly #known: KnownWorkers;
  #batches: MeasuredBatch[] = [];
  #ticketKey: string | null = null;
  #pings: NodeJS.Timeout | null = null;

  constructor(options: WorkerPlaneOptions) {
    this.#options = options;
    this.#known = new KnownWorkers(options.routingDir);
    this.#writer = new DiskTableWriter(options.routingDir, options.log, () => ({
      version: this.#table.version,
      environments: [...this.#table.environments.values()],
    }));
    this.#server = createServer((socket) => this.#accept(socket));
  }

  observe(observer: RouterObserver): void {
    this.#observer = observer;
  }

  async load(version: number, batches: AsyncIterable<EnvironmentRoutes[]>): Promise<void> {
    const environments = new Map<string, EnvironmentRoutes>();
    for await (const batch of batches) for (const routes of batch) environments.set(routesKey(routes), routes);
    this.#table = { version, environments };
    await mkdir(this.#options.routingDir, { recursive: true, mode: 0o700 });
    this.#writer.replace();
    for (const worker of this.#workers.values()) worker.sync(() => this.#table);
  }

  change(version: number, environments: EnvironmentRoutes[]): void {
    this.#table.version = version;
    for (const routes of environments) {
      if (routes.hosts.length > 0) this.#table.environments.set(routesKey(routes), routes);
      else this.#table.environments.delete(routesKey(routes));
    }
    this.#writer.change(version, environments);
    for (const worker of this.#workers.values()) worker.sendChange(version, environments);
  }

  /**
   * The socket is opened under another name and renamed: where the agent before this one still runs, it neither loses
   * its own socket nor, at its end, removes this one.
   */
  async listen(): Promise<RouterPorts> {
    const { socketPath, ports } = this.#options;
    const temporary = `${socketPath}.${process.pid}`;
    this.#server.listen(temporary);
    await once(this.#server, 'listening');
    await chmod(temporary, 0o600);
    await rename(temporary, socketPath);
    this.#pings = setInterval(() => this.#ping(), pingEveryMs).unref();
    return ports;
  }

  routers() {
    return [...this.#workers.values()].filter((worker) => worker.responds).map((worker) => worker.state);
  }

  takeMeasurements(): MeasuredBatch[] {
    return this.#batches.splice(0);
  }

  expireCertificates(names: string[] | null): void {
    for (const worker of this.#workers.values()) worker.send({ type: 'expire', names });
    for (const name of names ?? []) void this.#refreshFile(name);
  }

  setTicketKey(key: Buffer): void {
    this.#ticketKey = key.toString('base64');
    for (const worker of this.#workers.values()) worker.send({ type: 'ticket-key', key: this.#ticketKey });
  }

  /** The workers go on without this process. */
  async stop(): Promise<void> {
    if (this.#pings) clearInterval(this.#pings);
    for (const socket of this.#sockets) socket.destroy();
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve));
    await this.#writer.settle();
  }

  #accept(socket: Socket): void {
    let worker: WorkerConnection | null = null;
    this.#sockets.add(socket);
    socket.on('error', () => {}); // a close follows
    socket.once('close', () => {
      this.#sockets.delete(socket);
      if (worker) this.#lose(worker);
    });
    onMessages<FromWorker>(socket, (message) => {
      if (message.type === 'hello') worker = this.#join(socket, message);
      else if (worker) this.#handle(worker, message);
    });
  }

  #join(socket: Socket, { id, pid, version }: FromWorker & { type: 'hello' }): WorkerConnection {
    const worker = new WorkerConnection(socket, id, version ?? this.#table.version);
    this.#known.add(id, pid);
    this.#workers.get(id)?.end();
    this.#workers.set(id, worker);
    if (this.#ticketKey !== null) worker.send({ type: 'ticket-key', key: this.#ticketKey });
    void this.#sync(worker);
    return worker;
  }

  async #sync(worker: WorkerConnection): Promise<void> {
    try {
      await this.#observer?.joining(worker.state);
      await this.#observer?.catchUp();
    } finally {
      worker.sync(() => this.#table);
    }
  }

  #lose(worker: WorkerConnection): void {
    if (this.#workers.get(worker.id) !== worker) return; // it has reconnected
    this.#workers.delete(worker.id);
    if (worker.byeReceived) this.#forget(worker.id);
    else this.#forgetEnded();
  }

  #forgetEnded(): void {
    for (const id of this.#known.ended()) this.#forget(id);
  }

  #forget(id: string): void {
    this.#known.delete(id);
    this.#observer?.left(id);
  }

  #handle(worker: WorkerConnection, message: FromWorker): void {
    worker.lastMessageAt = performance.now();
    switch (message.type) {
      case 'applied':
        worker.version = message.version;
        this.#observer?.moved();
        break;
      case 'measured': {
        const { batch, router, measurements } = message;
        const settle = (stored: boolean) => void worker.send({ type: 'settled', batch, stored });
        this.#batches.push({ router, measurements, settle });
        break;
      }
      case 'bye':
        worker.byeReceived = true;
        break;
      case 'certificate':
        void this.#answer(worker, message.ask, () => this.#find(message.hostname, message.known));
        break;
      case 'challenge': {
        const { ask, hostname, token } = message;
        void this.#answer(worker, ask, () => this.#options.source.answerChallenge(hostname, token));
      }
    }
  }

  async #answer(
    worker: WorkerConnection,
    ask: number,
    find: () => ReturnType<CertificateSource['find' | 'answerChallenge']>,
  ): Promise<void> {
    try {
      worker.send({ type: 'answer', ask, answer: await find() });
    } catch (error) {
      this.#options.log.warn({ err: error }, 'a router asked for a certificate that could not be looked up');
      worker.send({ type: 'no-answer', ask });
    }
  }

  async #find(hostname: string, known: string | null): ReturnType<CertificateSource['find']> {
    const { source, disk, log } = this.#options;
    const found = await source.find(hostname, known);
    // Not for names that were never found: anyone can ask for any number of those.
    if (found !== 'current' && (found !== null || known !== null)) {
      disk.write(hostname, found).catch((error) => log.warn({ err: error }, 'a certificate could not be written'));
    }
    return found;
  }

  /** Where a certificate is on disk, a change of it is written there too, whether a worker asks for it or not. */
  async #refreshFile(hostname: string): Promise<void> {
    const { disk, log } = this.#options;
    try {
      const kept = await disk.read(hostname);
      if (kept) await this.#find(hostname, kept.id);
    } catch (error) {
      log.warn({ err: error, hostname }, 'a certificate on disk could not be renewed');
    }
  }

  #ping(): void {
    for (const worker of this.#workers.values()) worker.send({ type: 'ping' });
    this.#forgetEnded();
  }
}

/** A worker handles a message in one go, while visitors wait. */
const routesAtOnce = 25;
/** A worker that sent nothing for this long, though it is pinged every second, does not respond. */
const silentMs = 10_000;

interface HeldTable {
  version: number;
  environments: Map<string, EnvironmentRoutes>;
}

/** A connected worker: which version it has in force, and when its last message came. */
class WorkerConnection {
  readonly id: string;
  readonly #socket: Socket;
  version: number;
  byeReceived = false;
  lastMessageAt = performance.now();
  #syncing: Promise<void> = Promise.resolve();
  #hasBegun = false;

  constructor(socket: Socket, id: string, version: number) {
    this.#socket = socket;
    this.id = id;
    this.version = version;
  }

  get state(): RouterState {
    return { id: this.id, version: this.version };
  }

  get responds(): boolean {
    return performance.now() - this.lastMessageAt < silentMs;
  }

  send(message: ToWorker): boolean {
    return sendMessage(this.#socket, message);
  }

  /** Before the table, it would be taken for one that has nothing else in it; what is sent then has the change. */
  sendChange(version: number, routes: EnvironmentRoutes[]): void {
    if (this.#hasBegun) this.send({ type: 'change', version, routes });
  }

  /**
   * Sends the whole table, no faster than the worker takes it. Changes may be sent in between: each environment is read
   * when its turn comes, so nothing sent later is older.
   */
  sync(table: () => HeldTable): void {
    this.#syncing = this.#syncing.then(() => this.#sendWhole(table)).catch(() => this.end()); // it reconnects
  }

  async #sendWhole(table: () => HeldTable): Promise<void> {
    this.send({ type: 'begin' });
    this.#hasBegun = true;
    const keys = [...table().environments.keys()];
    for (let i = 0; i < keys.length; i += routesAtOnce) {
      const { environments } = table();
      const routes = keys.slice(i, i + routesAtOnce).flatMap((key) => environments.get(key) ?? []);
      if (!this.send({ type: 'routes', routes })) await this.#drained();
    }
    this.send({ type: 'end', version: table().version });
  }

  async #drained(): Promise<void> {
    if (this.#socket.destroyed) throw new Error('disconnected');
    if (this.#socket.writableNeedDrain) await once(this.#socket, 'drain');
  }

  end(): void {
    this.#socket.destroy();
  }
}

/**
 * The ids and process ids of the workers that ran last. After a crash of everything the next agent knows from them
 * which routers have ended, and does not wait for their leases to run out.
 */
class KnownWorkers {
  readonly #path: string;
  readonly #pids: Map<string, number>;

  constructor(routingDir: string) {
    this.#path = join(routingDir, 'workers.json');
    this.#pids = new Map(readPids(this.#path));
  }

  add(id: string, pid: number): void {
    this.#pids.set(id, pid);
    this.#write();
  }

  delete(id: string): void {
    if (this.#pids.delete(id)) this.#write();
  }

  /** Those whose process is gone. */
  ended(): string[] {
    return [...this.#pids].filter(([, pid]) => !isRunning(pid)).map(([id]) => id);
  }

  /** The list only saves time: without it, leases run out. */
  #write(): void {
    try {
      writeFileSync(this.#path, JSON.stringify([...this.#pids]), { mode: 0o600 });
    } catch {
      // The next change writes it again.
    }
  }
}

function readPids(path: string): [string, number][] {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return [];
  }
}

/** Another process may have got the number: then the lease has to run out. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

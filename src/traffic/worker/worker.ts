// A router worker: the built-in proxy in a process of its own. It needs no database and no control plane: it has its
// table from the agent, whenever that is there, or from disk. It listens once it has a table.
//
//   starting ──▶ serving ──▶ draining ──▶ ended

import { parseRange } from '../../lib/address.ts';
import type { Clock } from '../../lib/clock.ts';
import { createIds } from '../../lib/ids.ts';
import type { Log } from '../../lib/log.ts';
import { capConnections, readOpenFileLimit } from '../../lib/open-files.ts';
import type { ListenerHandle } from '../../lib/pass-listeners.ts';
import { defaultLimits } from '../proxy/limits.ts';
import { type BuiltInProxy, createProxy } from '../proxy/proxy.ts';
import { TlsContexts } from '../proxy/tls-contexts.ts';
import { AgentLink, linkCertificates } from './agent-link.ts';
import type { ToWorker, WorkerSettings } from './agent-protocol.ts';
import { MeasurementHandover } from './measurement-handover.ts';
import { DiskCertificates, readDiskTable } from './routing-files.ts';

/** How long an agent may take to send its table before the one on disk is used. */
const awaitAgentMs = 3000;
const measureEveryMs = 500;
/** Another worker takes over, so no request on its way may be lost. */
const lastRequestMs = 1000;
/** For the last measurements to be stored. */
const handOverMs = 3000;

interface WorkerParts {
  settings: WorkerSettings;
  clock: Clock;
  log: Log;
  /** It accepts requests. */
  onReady(): void;
}

export class Worker {
  readonly #parts: WorkerParts;
  readonly #id: string;
  readonly #proxy: BuiltInProxy;
  readonly #contexts: TlsContexts;
  readonly #link: AgentLink;
  readonly #measured: MeasurementHandover;
  /** Of the table that requests follow. */
  #version: number | null = null;
  #isLoading = false;
  #state: 'starting' | 'serving' | 'draining' = 'starting';
  #stopping: Promise<void> | null = null;
  readonly #timers: NodeJS.Timeout[] = [];

  constructor(parts: WorkerParts) {
    const { settings, clock, log } = parts;
    this.#parts = parts;
    this.#id = createIds(clock)('rtr');
    this.#link = new AgentLink({
      path: settings.agentSocket,
      hello: () => ({ type: 'hello', id: this.#id, pid: process.pid, version: this.#servedVersion }),
      onMessage: (message) => this.#handle(message),
      onConnected: () => this.#measured.send(this.#link),
      onLost: () => {
        this.#isLoading = false;
        this.#measured.lost();
      },
    });
    const disk = new DiskCertificates(settings.routingDir, Buffer.from(settings.routingKey, 'base64'));
    this.#contexts = new TlsContexts({ source: linkCertificates(this.#link, disk), clock, log });
    const { limits, redirect } = settings;
    const trustedProxies = settings.trustedProxies.flatMap((text) => parseRange(text) ?? []);
    const certificates = settings.tlsFd === null ? null : this.#contexts;
    // A visitor's connection has one to an instance beside it.
    const { connections: wanted = defaultLimits.connections } = limits;
    const connections = capConnections(wanted, 2, readOpenFileLimit());
    if (connections < wanted / 2) log.warn({ connections }, 'far fewer connections than set: see `ulimit -n`');
    this.#proxy = createProxy({
      clock,
      log,
      limits: { ...limits, connections },
      certificates,
      redirect,
      trustedProxies,
    });
    this.#measured = new MeasurementHandover(this.#id, this.#proxy.counter, settings.routingDir);
  }

  start(): void {
    this.#link.start();
    this.#timers.push(
      setTimeout(() => this.#useDisk(), awaitAgentMs),
      setInterval(() => this.#measure(), measureEveryMs),
    );
  }

  /** The sockets it accepts requests from. */
  get listeners(): ListenerHandle[] {
    return this.#proxy.listeners();
  }

  /** Ends the requests under way, or cuts them off after `drainS`, and hands over what it measured. */
  stop(): Promise<void> {
    this.#stopping ??= this.#drain();
    return this.#stopping;
  }

  async #drain(): Promise<void> {
    this.#state = 'draining';
    await this.#proxy.stop(this.#parts.settings.drainS * 1000, lastRequestMs);
    const giveUpAt = performance.now() + handOverMs;
    while (this.#link.isConnected && !this.#measured.isEmpty && performance.now() < giveUpAt) {
      this.#measured.send(this.#link);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    for (const timer of this.#timers) clearTimeout(timer);
    this.#measured.keep();
    this.#link.send({ type: 'bye' });
    await this.#link.stop();
  }

  get #servedVersion(): number | null {
    return this.#state === 'starting' ? null : this.#version;
  }

  #handle(message: Parameters<ConstructorParameters<typeof AgentLink>[0]['onMessage']>[0]): void {
    const { routes } = this.#proxy;
    switch (message.type) {
      case 'begin':
        this.#isLoading = true;
        routes.beginLoad();
        break;
      case 'routes':
        for (const one of message.routes) routes.replace(one);
        break;
      case 'end':
        this.#isLoading = false;
        routes.endLoad();
        this.#follow(message.version);
        break;
      case 'change':
        for (const one of message.routes) routes.replace(one);
        if (!this.#isLoading) this.#follow(message.version);
        break;
      default:
        this.#handleOther(message);
    }
  }

  #handleOther(message: ToWorker): void {
    if (message.type === 'expire') this.#contexts.expire(message.names);
    else if (message.type === 'ticket-key') this.#proxy.setTicketKey(Buffer.from(message.key, 'base64'));
    else if (message.type === 'settled') {
      this.#measured.settled(message.batch, message.stored);
      if (message.stored) this.#measured.send(this.#link);
    }
  }

  #follow(version: number): void {
    this.#version = version;
    this.#link.send({ type: 'applied', version });
    void this.#serve();
  }

  /** Where the agent is away, or connected and silent. */
  #useDisk(): void {
    const { settings, log } = this.#parts;
    if (this.#version !== null || this.#isLoading) return;
    const table = readDiskTable(settings.routingDir);
    if (!table) {
      log.info('waiting for the first routing table');
      return;
    }
    const { damaged } = table;
    if (damaged > 0) log.error({ damaged }, 'lines of the routing table on disk are damaged, and are left out');
    const { routes } = this.#proxy;
    routes.beginLoad();
    for (const one of table.environments) routes.replace(one);
    routes.endLoad();
    log.warn({ version: table.version }, 'no agent: serving from the routing table on disk');
    this.#follow(table.version);
  }

  async #serve(): Promise<void> {
    if (this.#state !== 'starting') return;
    this.#state = 'serving';
    const { settings, log, onReady } = this.#parts;
    const { httpFd, tlsFd } = settings;
    const ports = await this.#proxy.listen({ fd: httpFd }, tlsFd === null ? null : { fd: tlsFd });
    log.info({ ...ports, version: this.#version }, 'accepts requests');
    onReady();
  }

  #measure(): void {
    this.#measured.send(this.#link);
    const dropped = this.#proxy.counter.takeDropped();
    if (dropped > 0)
      this.#parts.log.error({ buckets: dropped }, 'measurements were dropped: too many wait for the agent');
  }
}

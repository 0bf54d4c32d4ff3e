// Visitors of all sites at both routers, without a pause worth mentioning. Each connection is used for some requests and
// then left, and it is known which worker had it. Every answer is looked at.
import { Agent, type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import type { Random } from './random.ts';
import type { FailedVisit } from './records.ts';
import { workerOf } from './worker-of.ts';
import type { SoakedService } from './world.ts';

export interface Site {
  host: string;
  /** What every image of this site begins with. */
  image: string;
}

const pauseMs = 80;
/** Longer than any process is stopped. */
const patienceMs = 90_000;

export class Visitors {
  readonly failed: FailedVisit[] = [];
  visits = 0;
  longestMs = 0;
  readonly #sites: Site[];
  readonly #running: Promise<void>[];
  #isStopped = false;

  constructor(services: SoakedService[], sites: Site[], perRouter: number, random: Random) {
    this.#sites = sites;
    this.#running = services.flatMap((service) => Array.from({ length: perRouter }, () => this.#come(service, random)));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#running);
  }

  async #come(service: SoakedService, random: Random): Promise<void> {
    while (!this.#isStopped) {
      const connection = new Connection(service);
      const uses = Math.ceil(random.between(0, 40));
      for (let use = 0; use < uses && !connection.isBroken && !this.#isStopped; use++) {
        await this.#visit(connection, random.pick(this.#sites));
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
      connection.close();
    }
  }

  async #visit(connection: Connection, site: Site): Promise<void> {
    const fromMs = Date.now();
    const reason = await connection.get(site);
    const toMs = Date.now();
    this.visits++;
    this.longestMs = Math.max(this.longestMs, toMs - fromMs);
    if (reason === null) return;
    const { service, worker, goodAtMs } = connection;
    const seen = { service: service.name, plane: service.plane, site: site.host, worker };
    this.failed.push({ ...seen, fromMs: Math.min(fromMs, goodAtMs), toMs, reason });
  }
}

class Connection {
  readonly service: SoakedService;
  worker: number | null = null;
  isBroken = false;
  /** When it was opened or last had an answer: it may have broken at any time since, however late this process sees it. */
  goodAtMs = Date.now();
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  #socket: Socket | null = null;

  constructor(service: SoakedService) {
    this.service = service;
  }

  /** Gives what is wrong with the answer, or null. */
  async get(site: Site): Promise<string | null> {
    try {
      const response = await this.#ask(site.host);
      let body = '';
      for await (const chunk of response) body += chunk;
      this.goodAtMs = Date.now();
      return faultOf(response.statusCode!, body, site);
    } catch (error) {
      this.isBroken = true;
      return `${(error as NodeJS.ErrnoException).code} ${(error as Error).message}`;
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  #ask(host: string): Promise<IncomingMessage> {
    const { routerPort } = this.service;
    const options = { host: '127.0.0.1', port: routerPort, headers: { host }, agent: this.#agent, timeout: patienceMs };
    return new Promise((resolve, reject) => {
      request(options, (response) => {
        this.worker ??= this.#workerOf(response.socket);
        resolve(response);
      })
        .on('socket', (socket) => {
          // The router may have closed the one before.
          if (socket !== this.#socket) {
            this.worker = null;
            this.goodAtMs = Date.now();
          }
          this.#socket = socket;
        })
        .on('timeout', function (this: { destroy(error: Error): void }) {
          this.destroy(new Error(`no answer in ${patienceMs / 1000} s`));
        })
        .on('error', reject)
        .end();
    });
  }

  #workerOf({ localPort }: Socket): number | null {
    const { routerPort, workers } = this.service;
    return localPort === undefined ? null : workerOf(routerPort, localPort, workers());
  }
}

function faultOf(status: number, body: string, { image }: Site): string | null {
  if (status !== 200) return `${status} ${body.slice(0, 200)}`;
  try {
    const seen = JSON.parse(body) as { image?: string; revision?: string };
    const isOwn = seen.image?.startsWith(`${image}:`) && /^r\d+$/.test(seen.revision ?? '');
    return isOwn ? null : `another site's answer: ${body.slice(0, 200)}`;
  } catch {
    return `not the answer of an instance: ${body.slice(0, 200)}`;
  }
}

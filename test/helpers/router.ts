// The built-in proxy on a free port, and instances behind it. All of them stop with the test file.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  Agent,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  request,
  type Server,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { after } from 'node:test';
import { pino } from 'pino';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import type { DataPlane } from '../../src/traffic/data-plane.ts';
import type { Measurement } from '../../src/traffic/measure/measurements.ts';
import type { ProxyLimits } from '../../src/traffic/proxy/limits.ts';
import { startProxy, type TlsOptions } from '../../src/traffic/proxy/proxy.ts';
import type { Route, Share, Target } from '../../src/traffic/table.ts';

export const host = 'shop-production.localhost';

export interface TestRouter extends DataPlane {
  /** Routes the host to these shares. */
  serve(...shares: Share[]): void;
  /** The requests counted for a revision since the start. */
  counted(revision: number): { requests: number; errors: number };
}

export async function startRouter(
  limits: Partial<ProxyLimits> = {},
  clock: Clock = systemClock,
  tls: TlsOptions | null = null,
): Promise<TestRouter> {
  const plane = await startProxy({ host: '127.0.0.1', port: 0, clock, log: pino({ enabled: false }), limits, tls });
  const taken = new Map<string, Measurement>();
  let stopped: Promise<void> | null = null;
  const stop = (drainMs: number) => (stopped ??= plane.stop(drainMs));
  after(() => stop(0));
  return {
    ...plane,
    stop,
    serve: (...shares) => plane.apply(new Map([[host, route(shares)]])),
    counted(revision) {
      for (const one of plane.takeMeasurements()) taken.set(`${one.revision} ${one.at}`, one);
      const own = [...taken.values()].filter((one) => one.revision === revision);
      const sum = (of: (one: Measurement) => number) => own.reduce((total, one) => total + of(one), 0);
      assert.ok(own.every(({ latency, requests }) => latency.reduce((a, b) => a + b, 0) === requests));
      return { requests: sum(({ requests }) => requests), errors: sum(({ errors }) => errors) };
    },
  };
}

export const route = (shares: Share[]): Route => ({ project: 'prj_1', environment: 'production', shares });

export const share = (revision: number, percent: number, ...targets: Target[]): Share => ({
  revision,
  percent,
  targets,
});

export interface TestInstance extends Target {
  server: Server;
  /** The requests it received, in order. */
  seen: IncomingMessage[];
  connections(): number;
  stop(): Promise<void>;
}

let instances = 0;

export async function startInstance(answer: RequestListener): Promise<TestInstance> {
  const seen: IncomingMessage[] = [];
  let connections = 0;
  const server = createServer((incoming, response) => {
    seen.push(incoming);
    answer(incoming, response);
  });
  server.on('connection', (socket) => {
    connections++;
    socket.on('error', () => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const stop = async () => {
    server.closeAllConnections();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  after(stop);
  const instance = `ins_${++instances}`;
  return { instance, host: '127.0.0.1', port, server, seen, connections: () => connections, stop };
}

/** Starts a router that sends every request to this instance. */
export async function serveInstance(instance: TestInstance, limits: Partial<ProxyLimits> = {}): Promise<TestRouter> {
  const router = await startRouter(limits);
  router.serve(share(1, 100, instance));
  return router;
}

/** An instance that responds with its name. */
export const named = (name: string) => startInstance((_, response) => response.end(name));

/** An address where nothing listens. */
export async function deadTarget(): Promise<Target> {
  const { instance, host, port, stop } = await named('dead');
  await stop();
  return { instance, host, port };
}

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
  trailers: NodeJS.Dict<string>;
}

/** The bytes of a request to the host. */
export const getRequest = (path = '/', headerLines = ''): string =>
  `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${headerLines}\r\n`;

interface AskOptions {
  method?: string;
  path?: string;
  host?: string;
  headers?: Record<string, string | string[]>;
  body?: string | Buffer;
}

export const agent = new Agent({ keepAlive: true, maxSockets: 64 });
after(() => agent.destroy());

export async function ask(port: number, options: AskOptions = {}): Promise<Answer> {
  const { method = 'GET', path = '/', host: name = host, headers = {}, body } = options;
  const outgoing = request({ agent, port, host: '127.0.0.1', method, path, headers: { ...headers, host: name } });
  outgoing.end(body);
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
  incoming.setEncoding('utf8');
  let text = '';
  for await (const chunk of incoming) text += chunk;
  return { status: incoming.statusCode!, headers: incoming.headers, body: text, trailers: incoming.trailers };
}

// A data plane on a free port, and instances behind it, which stop with their test. The tests of test/both-planes/ run with
// the built-in proxy and, with SLUICE_TEST_DATA_PLANE=haproxy, once more with HAProxy.

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
import { after } from 'node:test';
import { pino } from 'pino';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import type { EnvironmentRoutes, Share, Target } from '../../src/traffic/data-plane.ts';
import type { Measurement } from '../../src/traffic/measurements.ts';
import type { ProxyLimits } from '../../src/traffic/proxy/limits.ts';
import { createProxy } from '../../src/traffic/proxy/proxy.ts';
import { atEnd } from './at-end.ts';
import { freePort } from './free-port.ts';
import { startHaproxyRouter } from './router-haproxy.ts';
import { plane, type TestRouter, type TestRouterTls } from './router-plane.ts';

export const host = 'shop-production.localhost';

export async function startRouter(
  limits: Partial<ProxyLimits> = {},
  clock: Clock = systemClock,
  tls: TestRouterTls | null = null,
): Promise<TestRouter> {
  const router = plane === 'haproxy' ? await startHaproxyRouter(limits, tls) : await startBuiltIn(limits, clock, tls);
  const stop = (drainMs: number) => {
    closeIdle();
    return router.stop(drainMs);
  };
  return { ...router, stop, serve: (...shares) => router.apply(route(shares)) };
}

async function startBuiltIn(
  limits: Partial<ProxyLimits>,
  clock: Clock,
  tls: TestRouterTls | null,
): Promise<Omit<TestRouter, 'serve'>> {
  const { certificates = null, redirect = null } = tls ?? {};
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line) => void lines.push(line) });
  const proxy = createProxy({ clock, log, limits, certificates, redirect });
  const at = { host: '127.0.0.1', port: 0 };
  const ports = await proxy.listen(at, tls && at);
  const taken = new Map<string, Measurement>();
  let stopped: Promise<void> | null = null;
  const stop = (drainMs: number) => (stopped ??= proxy.stop(drainMs));
  after(() => stop(0));
  const takeMeasurements = () => {
    const batch = proxy.counter.take();
    batch?.settle(true);
    return batch?.measurements ?? [];
  };
  const apply = async (...environments: EnvironmentRoutes[]) => {
    proxy.routes.beginLoad();
    for (const routes of environments) proxy.routes.replace(routes);
    proxy.routes.endLoad();
  };
  return {
    apply,
    takeMeasurements,
    stop,
    logged: () => lines.map((line) => JSON.parse(line)),
    port: () => ports.http,
    tlsPort: () => ports.tls,
    async counted(revision) {
      for (const one of takeMeasurements()) taken.set(`${one.revision} ${one.at}`, one);
      const own = [...taken.values()].filter((one) => one.revision === revision);
      const sum = (of: (one: Measurement) => number) => own.reduce((total, one) => total + of(one), 0);
      assert.ok(own.every(({ latency, requests }) => latency.reduce((a, b) => a + b, 0) === requests));
      return {
        requests: sum(({ requests }) => requests),
        errors: sum(({ errors }) => errors),
        clientErrors: sum(({ clientErrors = 0 }) => clientErrors),
      };
    },
  };
}

/** An environment with these hosts and shares. */
export const route = (shares: Share[], hosts = [host], secure = false): EnvironmentRoutes => ({
  project: 'prj_1',
  environment: `of-${hosts[0]}`,
  hosts: hosts.map((name) => ({ name, secure })),
  shares,
});

export const share = (revision: number, percent: number, ...targets: Target[]): Share => ({
  revision,
  percent,
  targets: targets.map(({ instance, host, port }) => ({ instance, host, port })),
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
  const port = await freePort(); // nobody else answers there once it has stopped
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
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
  await router.serve(share(1, 100, instance));
  return router;
}

/** An instance that responds with its name. */
export const named = (name: string, status = 200) =>
  startInstance((_, response) => {
    response.statusCode = status;
    response.end(name);
  });

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
atEnd(() => agent.destroy());

/** Connections kept from earlier requests, for whose next one HAProxy would wait. */
function closeIdle(): void {
  for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
}

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

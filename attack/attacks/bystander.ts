// The other tenant at work: everything that must not wait for an attacker, each again and again, and how long it took.
import { once } from 'node:events';
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Target } from '../target.ts';

export interface Seen {
  /** In milliseconds, by the name of what was done. */
  tookMs: Map<string, number[]>;
  failures: string[];
  /** The most memory that the service had meanwhile. */
  mostBytes: number;
  /** By the wall clock. */
  sinceMs: number;
}

interface Work {
  name: string;
  /** Between two of them. */
  pauseMs: number;
  /** Below this, differences say something about the machine and nothing about the service. */
  leastMs: number;
  /** What of it took how long, in milliseconds; nothing: all of it. Throws what went wrong. */
  once(tools: Tools): Promise<unknown>;
}

interface Tools {
  target: Target;
  ask(method: string, path: string, body?: object): Promise<Answer>;
  visit(path: string): Promise<number>;
  /** Resolves with the next event that contains this. */
  eventWith(part: string): Promise<void>;
}

interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: of every shape
  body: any;
}

const localAddress = '127.0.0.3';
const waitMs = 60_000;

let count = 0;
const unique = () => `n${count++}-${process.pid}`;

export const works: Work[] = [
  {
    name: 'API',
    pauseMs: 25,
    leastMs: 10,
    once: async ({ ask }) => expect(200, await ask('GET', '/v1/projects')),
  },
  {
    name: 'router',
    pauseMs: 25,
    leastMs: 10,
    async once({ visit }) {
      const status = await visit('/');
      if (status !== 200) throw new Error(`${status}`);
    },
  },
  {
    name: 'log read',
    pauseMs: 100,
    leastMs: 10,
    async once({ target: { bystander }, ask }) {
      expect(200, await ask('GET', `/v1/projects/${bystander.project}/environments/production/logs?search=noted`));
    },
  },
  {
    name: 'delivery',
    pauseMs: 200,
    leastMs: 20,
    async once({ target: { bystander }, ask, eventWith }) {
      const [alertname, at] = [unique(), new Date().toISOString()];
      const alert = { labels: { alertname }, annotations: {}, startsAt: at, endsAt: at, fingerprint: hexOf(alertname) };
      const path = `/v1/projects/${bystander.project}/alerts/alertmanager`;
      const send = async (status: string) =>
        expect(200, await ask('POST', path, { version: '4', status, alerts: [{ ...alert, status }] }));
      const arrived = eventWith(alertname);
      const begunAt = performance.now();
      await send('firing');
      await arrived;
      const tookMs = performance.now() - begunAt;
      await send('resolved');
      return tookMs;
    },
  },
  {
    name: 'certificate',
    pauseMs: 300,
    leastMs: 50,
    async once({ target: { bystander }, ask }) {
      const path = `/v1/projects/${bystander.project}/domains`;
      const begunAt = performance.now();
      const made = await ask('POST', path, { hostname: `${unique()}.test`, environment: 'production' });
      expect(201, made);
      for (let state = ''; state !== 'active'; await pause(25)) {
        state = (await ask('GET', `${path}/${made.body.id}`)).body?.state;
        if (performance.now() - begunAt > waitMs) throw new Error(`${state} after ${waitMs / 1000} s`);
      }
      const tookMs = performance.now() - begunAt;
      expect(204, await ask('DELETE', `${path}/${made.body.id}`));
      return tookMs;
    },
  },
  {
    name: 'shipped line',
    pauseMs: 500,
    leastMs: 50,
    async once({ target, visit }) {
      const path = `/noted/${unique()}`;
      const arrived = target.logReceiver.arrivalOf(path);
      await visit(path);
      await arrived;
    },
  },
];

function expect(status: number, answer: Answer): void {
  if (answer.status !== status) throw new Error(`${answer.status} ${JSON.stringify(answer.body)?.slice(0, 300)}`);
}

const hexOf = (name: string): string => Buffer.from(name).toString('hex').slice(0, 64);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Works for that long. What has begun by then is waited for. */
export async function watch(target: Target, forMs: number): Promise<Seen> {
  const seen: Seen = { tookMs: new Map(), failures: [], mostBytes: 0, sinceMs: Date.now() };
  const { tools, close } = await openTools(target);
  const until = performance.now() + forMs;
  const repeat = async ({ name, pauseMs, once }: Work) => {
    const tookMs: number[] = [];
    seen.tookMs.set(name, tookMs);
    do {
      const begunAt = performance.now();
      const measured = await withDeadline(once(tools)).catch((error: Error) => {
        seen.failures.push(`${name}: ${error.message}`);
      });
      tookMs.push(typeof measured === 'number' ? measured : performance.now() - begunAt);
      seen.mostBytes = Math.max(seen.mostBytes, target.residentBytes());
      await pause(pauseMs);
    } while (performance.now() < until);
  };
  await Promise.all(works.map(repeat));
  await close();
  return seen;
}

async function withDeadline(work: Promise<unknown>): Promise<unknown> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`not done in ${waitMs / 1000} s`)), waitMs);
  return Promise.race([work, promise]).finally(() => clearTimeout(timer));
}

async function openTools(target: Target): Promise<{ tools: Tools; close(): Promise<void> }> {
  const agent = new Agent({ keepAlive: true });
  const { url, routerPort, bystander } = target;
  const awaited = new Map<string, () => void>();
  const receiver = createServer(async (incoming, response) => {
    const body = await text(incoming).catch(() => '');
    for (const [part, found] of awaited) if (body.includes(part)) found();
    response.writeHead(204).end();
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  let sent = 0;
  const ask: Tools['ask'] = (method, path, body) => {
    const authorization = `Bearer ${bystander.tokens[sent++ % bystander.tokens.length]}`;
    return exchange(new URL(path, url), { method, headers: { authorization }, agent, localAddress }, body);
  };
  const { port } = receiver.address() as AddressInfo;
  const webhook = await ask('POST', '/v1/webhooks', { url: `http://127.0.0.1:${port}/`, events: ['alert.fired'] });
  expect(201, webhook);
  const visit: Tools['visit'] = async (path) => {
    const at = new URL(path, `http://127.0.0.1:${routerPort}`);
    return (await exchange(at, { headers: { host: bystander.host }, agent, localAddress })).status;
  };
  const eventWith: Tools['eventWith'] = async (part) => {
    await new Promise<void>((found) => awaited.set(part, found));
    awaited.delete(part);
  };
  const close = async () => {
    await ask('DELETE', `/v1/webhooks/${webhook.body.id}`);
    agent.destroy();
    receiver.close();
    receiver.closeAllConnections();
  };
  return { tools: { target, ask, visit, eventWith }, close };
}

function exchange(url: URL, options: object, body?: object): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const sent = request(url, { ...options, timeout: waitMs }, async (response) => {
    const answered = await text(response);
    const isJson = response.headers['content-type']?.startsWith('application/json') === true;
    resolve({ status: response.statusCode!, body: isJson && answered ? JSON.parse(answered) : answered });
  });
  sent.on('timeout', () => sent.destroy(new Error(`no answer in ${waitMs / 1000} s`)));
  sent.on('error', reject);
  if (body) sent.setHeader('content-type', 'application/json');
  sent.end(body && JSON.stringify(body));
  return promise;
}

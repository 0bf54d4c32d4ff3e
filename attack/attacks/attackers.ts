// What a tenant can do at its worst, each without end: run in a process of its own (attacker-process.ts), so that only
// the service is disturbed by it, not those who measure.
import { Agent, request } from 'node:http';
import { connect } from 'node:net';

/** An account with a project that is deployed. */
export interface Tenant {
  /** Of no flood: what an attack sends with them must not be refused for its rate. */
  tokens: string[];
  project: string;
  deployment: string;
  /** Where its deployed revision answers. */
  host: string;
}

/** What the process of an attacker is given. */
export interface AttackerTarget {
  url: string;
  routerPort: number;
  attacker: Tenant;
}

/** A large file of the catalogue. */
export const filmPath = '/media/a/film.mp4';

/** Not the address of the other tenant: the limits of one address are not those of another. */
const localAddress = '127.0.0.2';
const agent = new Agent({ keepAlive: true, maxSockets: 8 });
const slowReaders = 400;

interface Sent {
  method?: string;
  body?: string;
  token?: string;
}

let next = 0;

/** Resolves when the answer has been read, or there was none. */
function send(
  { url, attacker }: AttackerTarget,
  path: string,
  { method = 'GET', body, token }: Sent = {},
): Promise<void> {
  const bearer = token ?? attacker.tokens[next++ % attacker.tokens.length]!;
  const headers = {
    authorization: `Bearer ${bearer}`,
    ...(body !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
  };
  return new Promise((resolve) => {
    const sent = request(new URL(path, url), { method, headers, agent, localAddress }, (response) => {
      response.resume().on('close', resolve);
    });
    sent.on('error', () => setTimeout(resolve, 20)).end(body);
  });
}

async function forEver(parallel: number, act: () => Promise<void>): Promise<void> {
  await Promise.all(
    Array.from({ length: parallel }, async () => {
      for (;;) await act();
    }),
  );
}

const bytes = 1024 * 1024 - 100;
const labels = `{"name":"a","labels":[${'1,'.repeat(bytes / 2 - 30)}1]}`;
const variables = `{"variables":{${Array.from({ length: 80_000 }, (_, n) => `"V${n}":"a"`).join()}}}`;

/** A connection that asks and does not read, opened again when it is closed. */
function openSlowReader(port: number, path: string, host: string): void {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => {});
  socket.on('close', () => setTimeout(openSlowReader, 1000, port, path, host));
  socket.pause();
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
}

const webhooks = 300;

/** As large as a message may be, each time with other alerts. */
const alertmanagerMessage = (message: number): string => {
  const at = new Date().toISOString();
  const alerts = Array.from({ length: 1000 }, (_, n) => ({
    ...{ status: 'firing', labels: { alertname: 'Many' }, annotations: {}, startsAt: at, endsAt: at },
    fingerprint: (message * 1000 + n).toString(16),
  }));
  return JSON.stringify({ version: '4', status: 'firing', alerts });
};

const headersWith = (token: string) => ({ authorization: `Bearer ${token}`, 'content-type': 'application/json' });

async function newToken(url: string, token: string): Promise<string> {
  const body = JSON.stringify({ name: 'one of many', scopes: ['*'] });
  const answer = await fetch(`${url}/v1/tokens`, { method: 'POST', headers: headersWith(token), body });
  return ((await answer.json()) as { token: string }).token;
}

async function newProject({ url, attacker }: AttackerTarget): Promise<string | undefined> {
  const headers = headersWith(attacker.tokens[next++ % attacker.tokens.length]!);
  const answer = await fetch(`${url}/v1/projects`, { method: 'POST', headers, body: '{"name":"Comes and goes"}' });
  return ((await answer.json()) as { id?: string }).id;
}

export const attackers: Record<string, (target: AttackerTarget) => Promise<void>> = {
  'largest bodies': (target) => {
    // One token: what goes beyond its limit is refused before it is read, and would only make room for the others.
    const token = target.attacker.tokens[0]!;
    const path = `/v1/projects/${target.attacker.project}/environments/production`;
    return forEver(2, async () => {
      await send(target, '/v1/projects', { method: 'POST', body: labels, token });
      await send(target, path, { method: 'PATCH', body: variables, token });
    });
  },
  'clients that do not read': async (target) => {
    const port = Number(new URL(target.url).port);
    for (let n = 0; n < slowReaders; n++) openSlowReader(port, filmPath, 'x');
    for (let n = 0; n < 100; n++) openSlowReader(target.routerPort, '/', target.attacker.host);
    await forEver(0, async () => {});
  },
  'logs of many instances': (target) => {
    const { project, deployment } = target.attacker;
    return forEver(6, () => send(target, `/v1/projects/${project}/deployments/${deployment}/logs?tail=1000`));
  },
  'alerts for hundreds of webhooks': async (target) => {
    const body = JSON.stringify({ url: 'http://127.0.0.1:9/', events: ['*'] });
    await Promise.all(Array.from({ length: webhooks }, () => send(target, '/v1/webhooks', { method: 'POST', body })));
    let message = 0;
    return forEver(1, () => {
      const path = `/v1/projects/${target.attacker.project}/alerts/alertmanager`;
      return send(target, path, { method: 'POST', body: alertmanagerMessage(message++) });
    });
  },
  'a search that was quadratic': (target) => {
    const path = `/v1/projects/${target.attacker.project}/environments/production/logs`;
    return forEver(6, () => send(target, `${path}?limit=100&search=${encodeURIComponent('人z')}`));
  },
  'metrics and reference without a token': (target) =>
    forEver(8, () => send(target, next % 2 ? '/metrics' : '/docs', { token: 'none' })),
  'many tokens of one account': async (target) => {
    const { url, attacker } = target;
    const tokens = await Promise.all(Array.from({ length: 40 }, () => newToken(url, attacker.tokens[0]!)));
    return forEver(16, () => send(target, '/v1/projects', { token: tokens[next++ % tokens.length]! }));
  },
  'webhooks whose DNS is silent': async (target) => {
    const body = (n: number) => JSON.stringify({ url: `http://${n}.silent.test/`, events: ['*'] });
    let n = 0;
    return forEver(8, () => send(target, '/v1/webhooks', { method: 'POST', body: body(n++) }));
  },
  'projects that come and go': (target) =>
    forEver(2, async () => {
      const id = await newProject(target);
      if (id) await send(target, `/v1/projects/${id}`, { method: 'DELETE' });
    }),
  'HEAD of the event stream': (target) => forEver(4, () => send(target, '/v1/events/stream', { method: 'HEAD' })),
  'early hints without end': (target) => forEver(8, () => visit(target)),
};

function visit({ routerPort, attacker }: AttackerTarget): Promise<void> {
  return new Promise((resolve) => {
    const options = { host: '127.0.0.1', port: routerPort, localAddress, agent, headers: { host: attacker.host } };
    const sent = request(options, (response) => response.resume().on('close', resolve));
    sent.on('error', () => setTimeout(resolve, 20)).end();
  });
}

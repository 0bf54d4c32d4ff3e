// What a tenant can do at its worst, each without end: run in a process of its own (attacker-process.ts), so that only
// the service is disturbed by it, not those who measure.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import {
  type AttackerTarget,
  asks,
  create,
  deployWith,
  filmPath,
  forEver,
  localAddress,
  next,
  send,
  times,
  visit,
} from './attacker-calls.ts';

/** Prepares what it needs, and gives the attack itself. */
type Attacker = (target: AttackerTarget) => Promise<() => Promise<void>>;

const quotaOfWebhooks = 1000;
const quotaOfTokens = 1000;
const domainsOfProject = 1000;
const mostReplicas = 20;
const slowReaders = 400;

const bytes = 1024 * 1024 - 100;
const labels = `{"name":"a","labels":[${'1,'.repeat(bytes / 2 - 30)}1]}`;
const variables = `{"variables":{${Array.from({ length: 80_000 }, (_, n) => `"V${n}":"a"`).join()}}}`;

const scaled = (number: number, { size }: AttackerTarget): number => Math.max(2, Math.floor(number * size));

const production = ({ attacker }: AttackerTarget): string => `/v1/projects/${attacker.project}/environments/production`;

/** A connection that asks and does not read, opened again when it is closed. */
function openSlowReader(port: number, path: string, host: string): void {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => {});
  socket.on('close', () => setTimeout(openSlowReader, 1000, port, path, host));
  socket.pause();
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
}

const webhooksTo = (target: AttackerTarget, url: string, settings: object = {}) =>
  times(scaled(0.9 * quotaOfWebhooks, target), () =>
    create(target, '/v1/webhooks', { url, events: ['*'], ...settings }),
  );

/** Each time other alerts; at most 1,000 of them. */
function alertmanagerMessage(alerts: number): object {
  const at = new Date().toISOString();
  const one = () => ({
    ...{ status: 'firing', labels: { alertname: 'Many' }, annotations: {}, startsAt: at, endsAt: at },
    fingerprint: randomBytes(8).toString('hex'),
  });
  return { version: '4', status: 'firing', alerts: Array.from({ length: alerts }, one) };
}

const fireAlerts = (target: AttackerTarget, project: string, alerts: number) =>
  send(target, `/v1/projects/${project}/alerts/alertmanager`, { method: 'POST', body: alertmanagerMessage(alerts) });

const newProject = (target: AttackerTarget) =>
  send(target, '/v1/projects', { method: 'POST', body: { name: 'Comes and goes' } });

/** All its lines are the same long text. */
async function prepareLogs(target: AttackerTarget, text: string): Promise<void> {
  await deployWith(target, { STANDIN_LOG_LINES: '1000', STANDIN_LOG_TEXT: text, STANDIN_EARLY_HINTS: null });
  // What is collected is what is searched.
  await asks(500, async () => {
    const { body } = await send(target, `${production(target)}/logs?limit=10`);
    return body?.data?.some(({ text: found }: { text: string }) => found === text) ?? false;
  });
}

/** A receiver that takes requests and never answers. */
async function silentReceiver(): Promise<string> {
  const server = createServer(() => {}).listen(0, localAddress);
  await once(server, 'listening');
  return `http://${localAddress}:${(server.address() as AddressInfo).port}/`;
}

const nested = `${'{"a":['.repeat(1900)}1${']}'.repeat(1900)}`;

export const attackers: Record<string, Attacker> = {
  'largest bodies': async (target) => {
    // One token: what goes beyond its limit is refused before it is read, and would only make room for the others.
    const token = target.attacker.tokens[0]!;
    return () =>
      forEver(2, async () => {
        await send(target, '/v1/projects', { method: 'POST', body: labels, token });
        await send(target, production(target), { method: 'PATCH', body: variables, token });
      });
  },
  'clients that do not read': async (target) => async () => {
    const port = Number(new URL(target.url).port);
    for (let n = 0; n < slowReaders; n++) openSlowReader(port, filmPath, 'x');
    for (let n = 0; n < 100; n++) openSlowReader(target.routerPort, '/', target.attacker.host);
  },
  'logs of many instances': async (target) => {
    const { project, deployment } = target.attacker;
    return () => forEver(6, () => send(target, `/v1/projects/${project}/deployments/${deployment}/logs?tail=1000`));
  },
  'alerts for all webhooks there may be': async (target) => {
    await webhooksTo(target, 'http://127.0.0.1:9/');
    return () => forEver(1, () => fireAlerts(target, target.attacker.project, 1000));
  },
  'a project with 90,000 deliveries is deleted': async (target) => {
    await webhooksTo(target, 'http://127.0.0.1:9/');
    const alerts = scaled(100, target);
    const fill = async () => {
      const { body } = await newProject(target);
      const own = { url: 'http://127.0.0.1:9/', events: ['*'], project_id: body.id };
      const last = `/v1/webhooks/${await create(target, '/v1/webhooks', own)}`;
      await fireAlerts(target, body.id, alerts);
      await asks(500, async () => (await send(target, `${last}/deliveries?limit=100`)).body?.data?.length === alerts);
      return body.id;
    };
    let project = await fill();
    return () =>
      forEver(1, async () => {
        await send(target, `/v1/projects/${project}`, { method: 'DELETE' });
        project = await fill();
      });
  },
  'a search that was quadratic': async (target) => {
    await prepareLogs(target, '人'.repeat(5000));
    const path = `${production(target)}/logs?limit=100&search=${encodeURIComponent('人z')}`;
    return () => forEver(6, () => send(target, path));
  },
  'pages of nested JSON': async (target) => {
    await prepareLogs(target, nested);
    return () => forEver(6, () => send(target, `${production(target)}/logs?limit=1000`));
  },
  'lines that the log receiver refuses': async (target) => {
    await deployWith(target, { STANDIN_ERROR_PATH: '/', STANDIN_EARLY_HINTS: null, STANDIN_LOG_LINES: null });
    return () => forEver(2, () => visit(target, `/${'refused'.repeat(100)}`));
  },
  'metrics and reference without a token': async (target) => () =>
    forEver(8, () => send(target, next() % 2 ? '/metrics' : '/docs', { token: 'none' })),
  'all tokens there may be': async (target) => {
    const tokens: string[] = [];
    await times(scaled(0.9 * quotaOfTokens, target), async () => {
      const { body } = await send(target, '/v1/tokens', { method: 'POST', body: { name: 'one', scopes: ['*'] } });
      if (body?.token) tokens.push(body.token);
    });
    return () => forEver(16, () => send(target, '/v1/projects', { token: tokens[next() % tokens.length]! }));
  },
  'webhooks whose DNS is silent': async (target) => () =>
    forEver(8, async () => {
      const body = { url: `http://${next()}.silent.test/`, events: ['*'] };
      const { status, body: made } = await send(target, '/v1/webhooks', { method: 'POST', body });
      if (status === 201) await send(target, `/v1/webhooks/${made.id}/test`, { method: 'POST' });
      else await fireAlerts(target, target.attacker.project, 10);
    }),
  'domains whose DNS is silent': async (target) => {
    const domains = `/v1/projects/${target.attacker.project}/domains`;
    return () =>
      forEver(8, async () => {
        const body = { hostname: `n${next()}.silent-names.com`, environment: 'production' };
        const { status, body: made } = await send(target, domains, { method: 'POST', body });
        if (status === 201) await send(target, `${domains}/${made.id}/verify`, { method: 'POST' });
        else await send(target, `${domains}?limit=${domainsOfProject}`);
      });
  },
  'receivers that never answer': async (target) => {
    await webhooksTo(target, await silentReceiver());
    return () =>
      forEver(1, async () => {
        await fireAlerts(target, target.attacker.project, 10);
        await new Promise((resolve) => setTimeout(resolve, 500));
      });
  },
  'large variables, deployed again and again': async (target) => {
    const project = `/v1/projects/${target.attacker.project}`;
    const names = Array.from({ length: scaled(20, target) }, (_, n) => `e${n}`);
    for (const name of names) {
      const quick = { health_check: { interval_s: 1, healthy_after: 1 }, drain_s: 0 };
      await create(target, `${project}/environments`, { name, ...quick });
    }
    const value = () => randomBytes(30_000).toString('base64');
    return () =>
      forEver(4, async () => {
        const environment = names[next() % names.length]!;
        const changed = { variables: { A: value(), B: value(), C: value(), D: value(), E: value(), F: value() } };
        await send(target, `${project}/environments/${environment}`, { method: 'PATCH', body: changed });
        const body = { environment, image: 'registry.example/shop:1' };
        await send(target, `${project}/deployments`, { method: 'POST', body });
      });
  },
  'all ports': async (target) => {
    const project = `/v1/projects/${target.attacker.project}`;
    const names = Array.from({ length: scaled(15, target) }, (_, n) => `p${n}`);
    for (const name of names) {
      const quick = { health_check: { interval_s: 1, healthy_after: 1 }, drain_s: 0 };
      await create(target, `${project}/environments`, { name, replicas: mostReplicas, ...quick });
    }
    return () =>
      forEver(4, async () => {
        const body = { environment: names[next() % names.length]!, image: 'registry.example/shop:1' };
        await send(target, `${project}/deployments`, { method: 'POST', body });
      });
  },
  'projects that come and go': async (target) => () =>
    forEver(2, async () => {
      const { body } = await newProject(target);
      if (body?.id) await send(target, `/v1/projects/${body.id}`, { method: 'DELETE' });
    }),
  'HEAD of the event stream': async (target) => () =>
    forEver(4, () => send(target, '/v1/events/stream', { method: 'HEAD' })),
  'early hints without end': async (target) => () => forEver(8, () => visit(target)),
};

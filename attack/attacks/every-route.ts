// Attacks on every route of the API: with ids that belong to another tenant, with tokens that lack the scope, and with
// the largest body that is read.
import fc from 'fast-check';
import { routes } from '../../src/contract/api.ts';
import { type Scope, scopes } from '../../src/contract/scopes.ts';
import { call } from '../../test/helpers/app.ts';
import { fitting, type Schema } from '../../test/helpers/schema-values.ts';
import type { Attack } from '../attack.ts';
import { type Target, tokenOf } from '../target.ts';
import type { Tenant } from './attacker-calls.ts';

type Ids = Record<string, string>;

/** One of everything that an account can have. */
async function makeOneOfEach(url: string, { tokens, project, deployment }: Tenant): Promise<Ids> {
  const make = async (path: string, body: object) => {
    const answer = await call(url, 'POST', `/v1${path}`, { token: tokens[0]!, body });
    if (answer.status >= 300) throw new Error(`POST ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body.id as string;
  };
  const hook = await make('/webhooks', { url: 'https://hooks.example/', events: ['*'] });
  const rule = { environment: 'production', name: 'Own', metric: 'external' };
  return {
    id: project,
    dpl: deployment,
    name: 'production',
    r: 'r1',
    tok: await make('/tokens', { name: 'own', scopes: ['projects:read'] }),
    rul: await make(`/projects/${project}/alert-rules`, rule),
    dom: await make(`/projects/${project}/domains`, { hostname: 'own.example', environment: 'production' }),
    reg: await make('/registries', { host: 'registry.example', username: 'own', password: 'secret' }),
    whk: hook,
    dlv: await make(`/webhooks/${hook}/test`, {}),
    evt: (await call(url, 'GET', '/v1/events?limit=1', { token: tokens[0]! })).body.data[0].id,
    alr: 'alr_00000000000000000000000000',
  };
}

/** All that its owner sees of it, by path, without what time alone changes. */
async function seenByOwner(url: string, token: string, ids: Ids): Promise<Map<string, string>> {
  const paths = [
    ...[`/projects/${ids.id}`, `/projects/${ids.id}/environments`, `/projects/${ids.id}/deployments`],
    ...[`/projects/${ids.id}/alert-rules`, `/registries/${ids.reg}`, '/tokens', '/webhooks'],
  ];
  const answers = await Promise.all(paths.map((path) => call(url, 'GET', `/v1${path}`, { token })));
  const texts = answers.map(({ status, body }) =>
    JSON.stringify([status, body]).replaceAll(/"(last_\w+|failing_since|probe_at)":[^,}]*/g, ''),
  );
  return new Map(paths.map((path, i) => [path, texts[i]!]));
}

function changes(before: Map<string, string>, after: Map<string, string>): string[] {
  const changed = [...before].filter(([path, text]) => after.get(path) !== text);
  return changed.map(([path, text]) => `what its owner sees at ${path} was ${text} and is ${after.get(path)}`);
}

async function attackWith(target: Target, token: string, ids: Ids, rounds: number) {
  const broken: string[] = [];
  let tried = 0;
  let unfound = 0;
  const foreign = Object.values(ids).filter((id) => id.includes('_'));
  for (const { method, path, body } of routes) {
    const bodies = body ? fc.sample(fitting(body as unknown as Schema), { numRuns: rounds, seed: 1 }) : [undefined];
    const at = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => ids[name] ?? 'x');
    for (const one of bodies) {
      if (path === '/events/stream' || (path === at && method !== 'GET')) continue;
      const query = path === at && method === 'GET' ? `?project_id=${ids.id}` : '';
      const answer = await call(target.url, method, `/v1${at}${query}`, {
        token,
        ...(one !== undefined && { body: one }),
      });
      tried++;
      if (answer.status === 403 || answer.status === 404) unfound++;
      // A list of one's own is allowed, as long as nothing foreign is in it.
      const leaks = path === at && foreign.some((id) => JSON.stringify(answer.body.data ?? []).includes(id));
      const isTried = answer.status < 500 && answer.status !== 429;
      if (!isTried || leaks || (path !== at && answer.status < 400))
        broken.push(`${method} ${path}: ${answer.status}${leaks ? ' with what is foreign' : ''}`);
    }
  }
  return { tried, unfound, broken };
}

/**
 * With a token of another account, and with one of the same account that is bound to another project: nothing is found, and
 * nothing is changed.
 */
export const foreignIds: Attack = {
  name: 'ids of another account and of another project, every route',
  async run(target, short) {
    const { url, attacker, bystander } = target;
    const owner = bystander.tokens[0]!;
    const ids = await makeOneOfEach(url, bystander);
    const { body: other } = await call(url, 'POST', '/v1/projects', { token: owner, body: { name: 'Other' } });
    const bound = await tokenOf(url, bystander, { scopes: ['*'], project_ids: [other.id] });
    const before = await seenByOwner(url, owner, ids);
    const rounds = short ? 1 : 5;
    const byAccount = await attackWith(target, attacker.tokens[0]!, ids, rounds);
    const { reg, tok, whk, dlv, evt, ...inProject } = ids;
    const byProject = await attackWith(target, bound, inProject, rounds);
    const broken = [...byAccount.broken, ...byProject.broken, ...changes(before, await seenByOwner(url, owner, ids))];
    const note = `${byAccount.unfound + byProject.unfound} times 403 or 404`;
    return { tried: byAccount.tried + byProject.tried + 1, broken, note };
  },
};

const narrow = scopes.filter((scope): scope is Exclude<Scope, '*'> => scope !== '*');

/** With a token that has every scope but the needed one: refused, before anything is read. */
export const wrongScopes: Attack = {
  name: 'every scope on every route that needs another',
  async run({ url, attacker }) {
    const broken: string[] = [];
    let tried = 0;
    for (const scope of narrow) {
      const token = await tokenOf(url, attacker, { scopes: [scope] });
      for (const { method, path, scope: needed } of routes) {
        if (needed === null || needed === 'public' || needed === scope) continue;
        const at = path.replaceAll(/\{\w+\}/g, 'x');
        const { status } = await call(url, method, `/v1${at}`, { token, ...(method !== 'GET' && { body: {} }) });
        tried++;
        if (status !== 403) broken.push(`${scope} on ${method} ${path}: ${status}`);
      }
    }
    return { tried, broken };
  },
};

const bodyLimit = 1024 * 1024;
const withinMs = 5000;

const fill = (piece: (index: number) => string, open: string, close: string): string => {
  const pieces: string[] = [];
  for (let length = 100; length < bodyLimit - 100; length += pieces.at(-1)!.length + 1)
    pieces.push(piece(pieces.length));
  return open + pieces.join() + close;
};

const fillings = [
  fill(() => '1', '[', ']'),
  fill((n) => `"a${n}"`, '[', ']'),
  fill((n) => `"a${n}":1`, '{', '}'),
  `"${'a'.repeat(bodyLimit - 200)}"`,
  '['.repeat(bodyLimit / 2 - 100) + ']'.repeat(bodyLimit / 2 - 100),
];

function bodiesOf(names: string[]): string[] {
  const [first] = names;
  return [fillings[2]!, ...(first ? fillings.map((filling) => `{"${first}":${filling}}`) : [])];
}

/** For every route that takes a body: it is refused soon, with few faults, and never with 5xx. */
export const largestBodies: Attack = {
  name: 'the largest body, every route',
  async run(target, short) {
    const broken: string[] = [];
    let tried = 0;
    for (const { method, path, body } of routes) {
      if (!body) continue;
      // The last name is mostly that of a list or an object.
      const bodies = bodiesOf(Object.keys(body.properties).slice(-1));
      for (const text of short ? bodies.slice(0, 1) : bodies) {
        const fault = await sendBody(target, method, path, text, tried++);
        if (fault) broken.push(`${method} ${path}: ${fault}`);
      }
    }
    return { tried, broken };
  },
};

async function sendBody(target: Target, method: string, path: string, body: string, n: number): Promise<string | null> {
  const { tokens, project, deployment } = target.attacker;
  const at = path.replace('{id}', project).replace('{dpl}', deployment).replace('{name}', 'production');
  const startedAt = performance.now();
  const answer = await call(target.url, method, `/v1${at}`, { body, token: tokens[n % tokens.length]! });
  const ms = performance.now() - startedAt;
  if (ms > withinMs) return `answered after ${Math.round(ms)} ms`;
  if (answer.status < 400 || answer.status >= 500 || answer.status === 429) return `${answer.status}`;
  const faults = answer.body.error.details?.length ?? 0;
  return faults > 20 ? `${faults} faults` : null;
}

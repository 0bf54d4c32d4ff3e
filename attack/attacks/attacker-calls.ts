// What attackers are given, and how they call the API and visit what is deployed.
import { Agent, request } from 'node:http';

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
  /** 1: as much of everything as the quotas allow; less where a moment has to do. */
  size: number;
}

/** A large file of the catalogue. */
export const filmPath = '/media/a/film.mp4';

/** Not the address of the other tenant: the limits of one address are not those of another. */
export const localAddress = '127.0.0.2';
const agent = new Agent({ keepAlive: true, maxSockets: 8 });

interface Sent {
  method?: string;
  body?: string | object;
  token?: string;
}

interface Answered {
  /** 0: there was no answer. */
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: attackers look into answers of every shape
  body: any;
}

/** Counts up, for tokens in turn and for names that are used once. */
let count = 0;
export const next = (): number => count++;

/** Resolves when the answer has been read, or there was none. */
export function send(
  { url, attacker }: AttackerTarget,
  path: string,
  { method = 'GET', body, token }: Sent = {},
): Promise<Answered> {
  const bearer = token ?? attacker.tokens[next() % attacker.tokens.length]!;
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  const headers = {
    authorization: `Bearer ${bearer}`,
    ...(text !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
  };
  return new Promise((resolve) => {
    const sent = request(new URL(path, url), { method, headers, agent, localAddress }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('close', () => resolve({ status: response.statusCode!, body: parsed(Buffer.concat(chunks)) }));
    });
    sent.on('error', () => setTimeout(resolve, 20, { status: 0, body: null })).end(text);
  });
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return null;
  }
}

/** What an attack needs before it begins: throws where it is refused. */
export async function create(target: AttackerTarget, path: string, body: object, method = 'POST'): Promise<string> {
  const answer = await send(target, path, { method, body });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body.id;
}

export function visit({ routerPort, attacker }: AttackerTarget, path = '/'): Promise<void> {
  return new Promise((resolve) => {
    const headers = { host: attacker.host };
    const options = { host: '127.0.0.1', port: routerPort, path, localAddress, agent, headers };
    const sent = request(options, (response) => response.resume().on('close', resolve));
    sent.on('error', () => setTimeout(resolve, 20)).end();
  });
}

export async function forEver(parallel: number, act: () => Promise<unknown>): Promise<void> {
  await Promise.all(
    Array.from({ length: parallel }, async () => {
      for (;;) await act();
    }),
  );
}

/** A few at a time. */
export async function times(total: number, act: (n: number) => Promise<unknown>): Promise<void> {
  let begun = 0;
  const one = async () => {
    while (begun < total) await act(begun++);
  };
  await Promise.all(Array.from({ length: 8 }, one));
}

/** Resolves when it gives true. */
export async function asks(everyMs: number, act: () => Promise<boolean>): Promise<void> {
  while (!(await act())) await new Promise((resolve) => setTimeout(resolve, everyMs));
}

/** Deploys the attacker's project with other variables, and waits until that is live. */
export async function deployWith(target: AttackerTarget, variables: Record<string, string | null>): Promise<void> {
  const project = `/v1/projects/${target.attacker.project}`;
  await create(target, `${project}/environments/production`, { variables }, 'PATCH');
  const deployment = { environment: 'production', image: 'registry.example/shop:1' };
  const id = await create(target, `${project}/deployments`, deployment);
  await asks(200, async () => (await send(target, `${project}/deployments/${id}`)).body?.state === 'succeeded');
}

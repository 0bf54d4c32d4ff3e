// The largest body that is read, for every route that takes one: it is refused soon, with few faults, and never with 5xx.
import { routes } from '../../src/contract/api.ts';
import { call } from '../../test/helpers/app.ts';
import type { Attack } from '../attack.ts';
import type { Target } from '../target.ts';

const limit = 1024 * 1024;
const withinMs = 5000;

const fill = (piece: (index: number) => string, open: string, close: string): string => {
  const pieces: string[] = [];
  for (let length = 100; length < limit - 100; length += pieces.at(-1)!.length + 1) pieces.push(piece(pieces.length));
  return open + pieces.join() + close;
};

const fillings = [
  fill(() => '1', '[', ']'),
  fill((n) => `"a${n}"`, '[', ']'),
  fill((n) => `"a${n}":1`, '{', '}'),
  `"${'a'.repeat(limit - 200)}"`,
  '['.repeat(limit / 2 - 100) + ']'.repeat(limit / 2 - 100),
];

function bodiesOf(names: string[]): string[] {
  const [first] = names;
  return [fillings[2]!, ...(first ? fillings.map((filling) => `{"${first}":${filling}}`) : [])];
}

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
        const fault = await send(target, method, path, text, tried++);
        if (fault) broken.push(`${method} ${path}: ${fault}`);
      }
    }
    return { tried, broken };
  },
};

async function send(target: Target, method: string, path: string, body: string, n: number): Promise<string | null> {
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

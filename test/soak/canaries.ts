// npm run soak -- canaries [--rollouts N] [--at-once N] [--plane builtin|haproxy]: real rollouts on the stand-in, with real
// visitors through each data plane. Canaries that are equal to stable have to be promoted, worse ones undone. See docs/soak.md.
import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startApp } from '../helpers/app.ts';
import { freePort } from '../helpers/free-port.ts';
import { Shop } from '../helpers/shop.ts';
import { type Random, seeded } from './random.ts';

interface Visitor {
  cookie: string | null;
  isUnlucky: boolean;
}

interface CanaryWorld {
  isWorse: boolean;
  /** Variables of the stand-in. A path that begins with STANDIN_ERROR_PATH fails. */
  stable?: Record<string, string>;
  canary?: Record<string, string>;
  /** With a cookie; none: each request is a visitor of its own. */
  visitors?: number;
  path(random: Random, visitor: Visitor, nowMs: number): string;
  /** From its first request on, one of the canary's instances fails. */
  hasBadInstance?: true;
}

const failOn = (path: string) => ({ STANDIN_ERROR_PATH: path });
const [failsOnBoth, failsOnCanary] = ['/?both', '/?b'];
const both = { stable: failOn(failsOnBoth), canary: failOn(failsOnBoth) };
const often = (share: number) => (random: Random) => (random.next() < share ? failsOnBoth : '/');

const worlds: Record<string, CanaryWorld> = {
  'errors 5 %': { ...both, isWorse: false, path: often(0.05) },
  'errors 30 %': { ...both, isWorse: false, path: often(0.3) },
  '5 of 100 visitors always fail': {
    ...both,
    isWorse: false,
    visitors: 100,
    path: (_, { isUnlucky }) => (isUnlucky ? failsOnBoth : '/'),
  },
  'bursts on both sides': {
    ...both,
    isWorse: false,
    path: (random, _, nowMs) => often(nowMs % 5000 < 1000 ? 0.5 : 0)(random),
  },
  'one bad instance of two': {
    isWorse: false,
    canary: { STANDIN_FAIL_ON: '/fail' },
    path: () => '/',
    hasBadInstance: true,
  },
  'all fail': { isWorse: true, canary: failOn('/'), path: () => '/' },
  'errors 2 → 20 %': {
    isWorse: true,
    stable: failOn(failsOnBoth),
    canary: failOn(failsOnCanary),
    path: (random) => (random.next() < 0.18 ? failsOnCanary : often(0.02)(random)),
  },
  'a third gets no answer': { isWorse: true, canary: { STANDIN_HANG_RATE: '0.33' }, path: () => '/' },
  '150 ms slower': { isWorse: true, canary: { STANDIN_LATENCY_MS: '150' }, path: () => '/' },
  'one path of ten dead': {
    isWorse: true,
    canary: failOn('/cart'),
    path: (random) => `/${random.next() < 0.1 ? 'cart' : 'page'}/${Math.floor(random.next() * 100)}`,
  },
};

const perSecond = 20;
const canary = { warmup_s: 0, bake_s: 25 };
const givesUpAfterMs = 10_000;

type End = 'promoted' | 'analysis' | 'alert' | 'undecided';
interface Ended {
  end: End;
  wasReplaced: boolean;
  /** Of the canary, when it was undone. */
  requests: number | null;
  message: string;
}

/** Resolves with the exit code. */
export async function canaries(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      rollouts: { type: 'string', default: '30' },
      'at-once': { type: 'string', default: '20' },
      plane: { type: 'string', multiple: true, default: ['builtin', 'haproxy'] },
    },
  });
  let broken = 0;
  for (const plane of values.plane) broken += await runOn(plane, Number(values.rollouts), Number(values['at-once']));
  return broken > 0 ? 1 : 0;
}

async function runOn(plane: string, rollouts: number, atOnce: number): Promise<number> {
  const env = {
    SLUICE_DATA_PLANE: plane,
    SLUICE_ROUTER_PORT: String(await freePort()),
    SLUICE_ROUTER_TLS_PORT: String(await freePort()),
    SLUICE_INSTANCE_PORTS: '30000-32700', // each is used once: one that is free again rests for minutes
  };
  const app = await startApp({ tokenLimit: 1_000_000, env });
  const agent = new Agent({ keepAlive: true });
  const names = Object.keys(worlds);
  const waiting = Array.from({ length: rollouts * names.length }, (_, n) => n);
  const ended = new Map<string, Ended[]>(names.map((name) => [name, []]));
  const work = async () => {
    for (let n = waiting.shift(); n !== undefined; n = waiting.shift()) {
      const name = names[n % names.length]!;
      ended.get(name)!.push(await rollOut(app.url, agent, worlds[name]!, seeded(33, n)));
    }
  };
  try {
    await Promise.all(Array.from({ length: atOnce }, work));
  } finally {
    agent.destroy();
    await app.stop();
  }
  console.log(`\n${plane}: ${rollouts} rollouts of each kind`);
  return names.filter((name) => !report(name, worlds[name]!, ended.get(name)!)).length;
}

async function rollOut(url: string, agent: Agent, world: CanaryWorld, random: Random): Promise<Ended> {
  const shop = await Shop.open(url, { replicas: world.hasBadInstance ? 4 : 1, canary, variables: world.stable ?? {} });
  shop.pollMs = 500;
  await shop.released('registry.example/shop:1');
  const unset = Object.fromEntries(Object.keys(world.stable ?? {}).map((name) => [name, null]));
  await shop.set({ variables: { ...unset, ...world.canary } });
  const { id } = await shop.deploy('registry.example/shop:2', {
    strategy: 'canary',
    canary_percent: world.hasBadInstance ? 50 : 30,
  });
  await shop.reaches(id, 'canary');
  const visits = new Visits(shop, agent, world, random);
  if (world.hasBadInstance) while ((await shop.visit(undefined, '/fail')).revision !== 'r2');
  visits.start();
  const done = await shop.reaches(id, 'succeeded', 'failed').catch(() => null);
  visits.stop();
  if (done === null) {
    await shop.api('POST', `/deployments/${id}/abort`);
    const { timeline } = await shop.deployment(id);
    return { end: 'undecided', wasReplaced: false, requests: null, message: timeline.at(-1)!.message };
  }
  const message = done.failure?.message ?? done.timeline.at(-2)!.message;
  const requests = /of ([\d,]+) requests failed/.exec(message)?.[1]?.replaceAll(',', '');
  return {
    end: done.failure === null ? 'promoted' : done.failure.code === 'alert_fired' ? 'alert' : 'analysis',
    wasReplaced: done.timeline.some((entry) => entry.message.endsWith('Replacing it.')),
    requests: done.failure && requests ? Number(requests) : null,
    message,
  };
}

/** At a steady rate, whatever becomes of those under way. */
class Visits {
  readonly #shop: Shop;
  readonly #agent: Agent;
  readonly #world: CanaryWorld;
  readonly #random: Random;
  readonly #known: Visitor[];
  #isStopped = false;

  constructor(shop: Shop, agent: Agent, world: CanaryWorld, random: Random) {
    this.#shop = shop;
    this.#agent = agent;
    this.#world = world;
    this.#random = random;
    this.#known = Array.from({ length: world.visitors ?? 0 }, (_, n) => ({ cookie: null, isUnlucky: n < 5 }));
  }

  async start(): Promise<void> {
    const startedAt = performance.now();
    for (let sent = 0; !this.#isStopped; sent++) {
      this.#visit(this.#known.length === 0 ? { cookie: null, isUnlucky: false } : this.#random.pick(this.#known));
      await pause(Math.max(0, startedAt + (1000 * sent) / perSecond - performance.now()));
    }
  }

  stop(): void {
    this.#isStopped = true;
  }

  #visit(visitor: Visitor): void {
    const [, port] = this.#shop.host.split(':');
    const path = this.#world.path(this.#random, visitor, Date.now());
    const headers = {
      host: this.#shop.host,
      ...(visitor.cookie !== null && { cookie: `sluice_revision=${visitor.cookie}` }),
    };
    request({ host: '127.0.0.1', port, path, headers, agent: this.#agent, timeout: givesUpAfterMs }, (response) => {
      response.resume();
      const set = /sluice_revision=([^;]+)/.exec(response.headers['set-cookie']?.[0] ?? '')?.[1];
      if (set !== undefined && this.#known.length > 0) visitor.cookie = set;
    })
      .on('timeout', function (this: { destroy(): void }) {
        this.destroy();
      })
      .on('error', () => {}) // the service counts it
      .end();
  }
}

/** Prints it, and says whether it is as promised. */
function report(name: string, { isWorse }: CanaryWorld, ended: readonly Ended[]): boolean {
  const count = (end: End) => ended.filter((one) => one.end === end).length;
  const requests = ended.flatMap((one) => one.requests ?? []).sort((a, b) => a - b);
  const replaced = ended.filter((one) => one.wasReplaced).length;
  const undone = count('analysis') + count('alert');
  const isKept = isWorse ? undone >= 0.9 * ended.length : undone <= Math.ceil(0.01 * ended.length);
  const parts = [
    `${count('promoted')} promoted`,
    `${count('analysis')} undone by the analysis`,
    `${count('alert')} by an alert`,
    `${count('undecided')} undecided`,
    ...(replaced > 0 ? [`an instance replaced in ${replaced}`] : []),
    ...(requests.length > 0 ? [`after ${requests[requests.length >> 1]} requests (median)`] : []),
  ];
  console.log(`${isKept ? ' ' : '✖'} ${isWorse ? 'worse' : 'equal'}: ${name}: ${parts.join(', ')}`);
  const odd = ended.find(({ end }) => (isWorse ? end === 'promoted' || end === 'undecided' : end !== 'promoted'));
  if (odd) console.log(`      ${odd.end}: ${odd.message}`);
  return isKept;
}

// A project with one environment, deployed to and visited as its users do.
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { Deployment } from '../../src/contract/deployments.ts';
import type { Environment } from '../../src/contract/environments.ts';
import type { Revision } from '../../src/contract/revisions.ts';
import { call, type Result } from './app.ts';
import { until } from './wait.ts';

/** Fast enough for tests: instances drain at once, canaries bake for a second. */
export const quick = { drain_s: 0, canary: { bake_s: 1 }, health_check: { interval_s: 1, healthy_after: 1 } };

export interface Visit {
  status: number;
  body: string;
  image: string | undefined;
  revision: string | undefined;
  cookie: string | undefined;
}

export class Shop {
  readonly url: string;
  readonly project: string;
  host = '';
  /** How often a deployment is asked for while waiting: a service with the usual rate limit allows ten a second. */
  pollMs = 25;
  /** The process that answers is killed meanwhile: a connection may break, and the next question is asked on another. */
  isKilled = false;

  private constructor(url: string, project: string) {
    this.url = url;
    this.project = project;
  }

  static async open(url: string, settings: object = {}): Promise<Shop> {
    const { status, body } = await call(url, 'POST', '/v1/projects', {
      body: { name: `Shop ${Math.random().toString(36).slice(2)}` },
    });
    assert.equal(status, 201, JSON.stringify(body));
    const shop = new Shop(url, body.id);
    const { canary = quick.canary } = settings as { canary?: object };
    await shop.set({ ...quick, ...settings, canary: { warmup_s: 0, ...canary } });
    shop.host = new URL((await shop.environment()).url).host;
    return shop;
  }

  /** A project that exists already, perhaps on a service with another address. */
  static async at(url: string, project: string): Promise<Shop> {
    const shop = new Shop(url, project);
    shop.host = new URL((await shop.environment()).url).host;
    return shop;
  }

  api(method: string, path: string, body?: object): Promise<Result> {
    return call(this.url, method, `/v1/projects/${this.project}${path}`, { body });
  }

  async set(settings: object): Promise<void> {
    const { status, body } = await this.api('PATCH', '/environments/production', settings);
    assert.equal(status, 200, JSON.stringify(body));
  }

  async environment(): Promise<Environment> {
    return (await this.api('GET', '/environments/production')).body;
  }

  async revision(id: string): Promise<Revision> {
    return (await this.api('GET', `/environments/production/revisions/${id}`)).body;
  }

  async deploy(image: string, more: object = {}): Promise<Deployment> {
    const { status, body } = await this.api('POST', '/deployments', { environment: 'production', image, ...more });
    assert.equal(status, 201, JSON.stringify(body));
    return body;
  }

  async deployment(id: string): Promise<Deployment> {
    return (await this.api('GET', `/deployments/${id}`)).body;
  }

  /** Waits until the deployment is in one of the states, and fails if it ends in another. */
  reaches(id: string, ...states: string[]): Promise<Deployment> {
    return this.#becomes(id, states.join(' or '), ({ state }) => states.includes(state));
  }

  /** The same for the phase of its canary. */
  reachesPhase(id: string, phase: string): Promise<Deployment> {
    return this.#becomes(id, phase, ({ canary }) => canary?.phase === phase);
  }

  async #becomes(id: string, what: string, isSo: (deployment: Deployment) => boolean): Promise<Deployment> {
    let last: Deployment | undefined;
    const ask = async () => {
      last = await this.deployment(id).catch((error) => {
        if (!this.isKilled || error.message !== 'fetch failed') throw error;
        return undefined;
      });
      return last && (isSo(last) || last.finished_at !== null);
    };
    const shown = () => JSON.stringify(last, null, 1);
    await until(`${id} to be ${what}`, ask, 60_000, this.pollMs).catch((error) => {
      throw new Error(`${error.message}: ${shown()}`, { cause: error });
    });
    assert.ok(isSo(last!), `ended otherwise: ${shown()}`);
    return last!;
  }

  async released(image: string, more: object = {}): Promise<Deployment> {
    return this.reaches((await this.deploy(image, more)).id, 'succeeded');
  }

  visit(cookie?: string, path = '/'): Promise<Visit> {
    const [, port] = this.host.split(':');
    return new Promise((resolve, reject) => {
      const headers = { host: this.host, ...(cookie && { cookie: `sluice_revision=${cookie}` }) };
      const ask = request({ host: '127.0.0.1', port, path, headers, agent: false }, (answer) => {
        let body = '';
        answer.on('data', (chunk) => {
          body += chunk;
        });
        answer.on('end', () => {
          const parsed = body.startsWith('{') ? JSON.parse(body) : {};
          const set = answer.headers['set-cookie']?.[0];
          resolve({
            status: answer.statusCode!,
            body,
            image: parsed.image,
            revision: parsed.revision,
            cookie: set && /sluice_revision=([^;]+)/.exec(set)?.[1],
          });
        });
        answer.on('error', reject);
      });
      ask.on('error', reject);
      ask.end();
    });
  }

  /** Visits until it is stopped; returns every visit that failed. The pauses leave the machine to what is tested. */
  load(clients = 4, pauseMs = 40): { visits(): number; stop(): Promise<{ visits: number; failed: string[] }> } {
    let stopped = false;
    let visits = 0;
    const failed: string[] = [];
    const running = Array.from({ length: clients }, async () => {
      while (!stopped) {
        visits++;
        await this.visit().then(
          ({ status, body }) => status === 200 || failed.push(`${status} ${body}`),
          (error) => failed.push(String(error)),
        );
        await pause(pauseMs);
      }
    });
    return {
      visits: () => visits,
      async stop() {
        stopped = true;
        await Promise.all(running);
        return { visits, failed };
      },
    };
  }
}

// The projects that are released and visited, and the receivers that hear of it.
import { request } from 'node:http';
import { pushImage } from '../helpers/images.ts';
import { until } from '../helpers/wait.ts';
import type { Subscription } from './facts.ts';
import type { Ledger } from './ledger.ts';
import { ended, type Releases } from './releases.ts';
import type { Site } from './visitors.ts';
import type { SoakedService, World } from './world.ts';

export type SoakedSite = Site & Releases;

const settings = {
  replicas: 2,
  drain_s: 1,
  canary: { warmup_s: 0, bake_s: 4, min_requests: 5 },
  health_check: { interval_s: 1, healthy_after: 1 },
};
const names = ['shop', 'blog', 'wiki', 'news'];

/** Each serves its first image when this resolves. */
export async function openSites(world: World, ledger: Ledger): Promise<SoakedSite[]> {
  const brokenImage = await pushImage(world.docker, world.registry, 'exits');
  const sites: SoakedSite[] = [];
  for (const name of names) sites.push(await openSite(world, ledger, name, brokenImage));
  for (const site of sites) {
    const body = { environment: 'production', image: site.images[0], note: `${site.name} 0` };
    const created = await ledger.post(`/v1/projects/${site.project}/deployments`, body.note, body, 'deployment');
    const state = await ended(ledger, site, created.body.id);
    if (state !== 'succeeded') throw new Error(`the first deployment of ${site.name} ended as ${state}`);
  }
  return sites;
}

async function openSite(
  { docker, registry }: World,
  ledger: Ledger,
  name: string,
  brokenImage: string,
): Promise<SoakedSite> {
  const images: string[] = [];
  for (const tag of ['v1', 'v2']) images.push(await pushImage(docker, registry, 'web', { image: name, tag }));
  const { body } = await ledger.post('/v1/projects', name, { name }, 'project');
  const environment = `/v1/projects/${body.id}/environments/production`;
  const changed = await ledger.patch(environment, settings);
  if (changed.status !== 200) throw new Error(JSON.stringify(changed.body));
  const host = new URL(changed.body.url).hostname;
  return { host, image: `${registry.host}/${name}`, project: body.id, name, images, brokenImage };
}

/** All of them hear of everything, one of them in strict order. */
export async function subscribe({ receivers }: World, ledger: Ledger): Promise<Subscription[]> {
  const subscriptions: Subscription[] = [];
  for (const [index, { url, arrivalsPath }] of receivers.entries()) {
    const isStrict = index === 0;
    const body = { url, events: ['*'], ordering: isStrict ? 'strict' : 'none' };
    const webhook = await ledger.post('/v1/webhooks', `webhook ${index}`, body);
    if (webhook.status !== 201) throw new Error(JSON.stringify(webhook.body));
    subscriptions.push({ arrivalsPath, secret: webhook.body.secret, isStrict });
  }
  return subscriptions;
}

const servedWithinMs = 120_000;

/** Every site answers at every router; as each has two workers, several times in a row. */
export async function allServed(services: SoakedService[], sites: Site[]): Promise<void> {
  for (const { routerPort } of services) {
    for (const { host } of sites) {
      let inARow = 0;
      const isServed = async () => {
        inARow = (await isAnswered(routerPort, host)) ? inARow + 1 : 0;
        return inARow >= 4;
      };
      await until(`${host} to be served on port ${routerPort}`, isServed, servedWithinMs, 100);
    }
  }
}

async function isAnswered(port: number, host: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const ask = request({ host: '127.0.0.1', port, headers: { host }, agent: false, timeout: 5000 }, (response) => {
    response.resume();
    resolve(response.statusCode === 200);
  });
  ask.on('timeout', () => ask.destroy());
  ask.on('error', () => resolve(false)).on('close', () => resolve(false));
  ask.end();
  return promise;
}

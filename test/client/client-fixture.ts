// What the tests of the client do with it.
import type { Sluice } from '../../src/client/index.ts';
import { quick } from '../helpers/shop.ts';

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** Creates a project that deploys quickly, and returns its id. */
export async function newShopOf(client: Sluice): Promise<string> {
  const { id } = await client.projects.create({ name: `Shop ${Math.random()}` });
  await client.environments.update(id, 'production', quick);
  return id;
}

export const deployWith = (client: Sluice, project: string, image: string, more: object = {}) =>
  client.deployments.create(project, { environment: 'production', image, ...more });

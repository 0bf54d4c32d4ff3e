// Reads what there is from the database, the engine and the receivers' files.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import type { Arrival, Facts } from './records.ts';
import type { World } from './world.ts';

export interface Subscription {
  arrivalsPath: string;
  secret: string;
  isStrict: boolean;
}

export async function ask<T extends object>({ postgres, services }: World, statement: string): Promise<T[]> {
  if (!postgres) return askFile<T>(join(services[0]!.dataDir, 'sluice.db'), statement);
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  try {
    return (await client.query(statement)).rows as T[];
  } finally {
    await client.end();
  }
}

function askFile<T extends object>(path: string, statement: string): T[] {
  const file = new DatabaseSync(path, { timeout: 10_000 });
  try {
    return file.prepare(statement).all() as T[];
  } finally {
    file.close();
  }
}

export async function listContainers({ docker }: World): Promise<Facts['containers']> {
  const found = await docker.client.listContainers({ all: true, filters: { label: ['sluice.instance'] } });
  return found.map(({ Labels, State }) => ({ id: Labels['sluice.instance']!, state: State }));
}

export const listInstanceRows = (world: World) =>
  ask<Facts['instanceRows'][number]>(world, 'select id, state from instance');

export async function countUnfinishedDeliveries(world: World): Promise<number> {
  const [row] = await ask<{ n: string }>(world, "select count(*) as n from delivery where state <> 'succeeded'");
  return Number(row!.n);
}

/** What failed would be due in minutes or hours: time passes at once. */
export async function hurryDeliveries(world: World): Promise<void> {
  await ask(world, "update delivery set due_at = 0 where state = 'pending' and lease is null");
  await ask(world, 'update webhook set probe_at = 0 where probe_at is not null');
}

export async function readFacts(world: World, subscriptions: Subscription[]): Promise<Facts> {
  const projects = await ask<Facts['projects'][number]>(world, 'select id, name, next_sequence from project');
  return {
    projects: projects.map((one) => ({ ...one, next_sequence: Number(one.next_sequence) })),
    deployments: await ask(world, 'select id, note, state, failure_code, finished_at from deployment'),
    events: await ask(world, 'select id, type, project_id, sequence, body from event'),
    unfinishedDeliveries: await countUnfinishedDeliveries(world),
    receivers: subscriptions.map(({ arrivalsPath, ...one }) => ({ ...one, arrivals: readArrivals(arrivalsPath) })),
    instanceRows: await listInstanceRows(world),
    containers: await listContainers(world),
    shares: (
      await ask<{ environment: string; percent: string }>(
        world,
        `select project_id || '/' || environment as environment, sum(traffic_percent) as percent from revision
         group by project_id, environment having count(*) filter (where state = 'active') > 0`,
      )
    ).map(({ environment, percent }) => ({ environment, percent: Number(percent) })),
  };
}

/** A line that a kill cut off was not answered. */
function readArrivals(path: string): Arrival[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line) => {
      try {
        return [JSON.parse(line) as Arrival];
      } catch {
        return [];
      }
    });
}

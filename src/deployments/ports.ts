// The ports that instances are given, by host: all regions, engines and processes of an installation that use the ports
// of one host share them. If an engine has several hosts, an instance has its port on all of them, so that it keeps the
// port wherever it is started.
//
// A routing table may be older than what runs. So a port that an instance had is given to no other until every live
// router has a table in force without that instance, and for some minutes more. A port has a row as long as it cannot
// be reused.
import { randomInt } from 'node:crypto';
import { sql } from 'kysely';
import { countPorts } from '../accounts/account-usage.ts';
import type { Db } from '../db/database.ts';
import { databaseNow } from '../db/database-clock.ts';
import type { RouterWatch } from '../traffic/router-watch.ts';
import { routingVersion } from '../traffic/traffic-queries.ts';

export interface PortRange {
  first: number;
  last: number;
}

const sizeOf = ({ first, last }: PortRange): number => last - first + 1;

export const isWithin = ({ first, last }: PortRange, port: number): boolean => first <= port && port <= last;

export const quarantineMs = 5 * 60_000;

interface PortPlace {
  hosts: readonly string[];
  range: PortRange;
}

/** Whose instances they are for, and how many ports they may have in all; null: any number. */
export interface PortOwner {
  accountId: string;
  most: number | null;
}

/** Where an instance is to be reached that is yet to be started; null: on one of several hosts. */
export const hostOf = (hosts: readonly string[]): string | null => (hosts.length === 1 ? hosts[0]! : null);

/**
 * In the transaction that writes the instances. Gives fewer ports than instances where no more are free, or the account has as
 * many as it may.
 */
export async function takePorts(
  tx: Db,
  { hosts, range }: PortPlace,
  instances: string[],
  owner: PortOwner | null = null,
): Promise<number[]> {
  const given = await lockGiven(tx, hosts, range);
  const rows = await tx.selectFrom('instance_port').select('port').where('host', 'in', hosts).execute();
  const room = owner === null || owner.most === null ? instances.length : await roomOf(tx, owner.accountId, owner.most);
  const count = Math.min(instances.length, room);
  const ports = nextPorts(range, given, new Set(rows.map(({ port }) => Number(port))), count);
  if (ports.length === 0) return [];
  for (const host of hosts) {
    const taken = ports.map((port, i) => ({
      host,
      port,
      instance_id: instances[i]!,
      account_id: owner?.accountId ?? null,
      freed_at: null,
      freed_version: 0,
    }));
    await tx.insertInto('instance_port').values(taken).execute();
  }
  await tx
    .updateTable('meta')
    .set({ value: String(ports.at(-1)) })
    .where('name', 'in', hosts.map(givenName))
    .execute();
  return ports;
}

const roomOf = async (tx: Db, accountId: string, most: number): Promise<number> =>
  Math.max(0, most - (await countPorts(tx, accountId)));

const givenName = (host: string): string => `instance_port ${host}`;

/** Of the first host. All are locked in the same order by everyone, so that no two wait for each other. */
async function lockGiven(tx: Db, hosts: readonly string[], range: PortRange): Promise<number> {
  const given = new Map<string, number>();
  for (const host of hosts.toSorted()) given.set(host, await lockGivenOn(tx, host, range));
  return given.get(hosts[0]!)!;
}

/**
 * The port that was given last. Others that want one wait until this transaction ends. Where none was given yet it is
 * any, so that installations which share a host are unlikely to try the same ports.
 */
async function lockGivenOn(tx: Db, host: string, { first, last }: PortRange): Promise<number> {
  const { value } = await tx
    .insertInto('meta')
    .values({ name: givenName(host), value: String(randomInt(first, last + 1)) })
    .onConflict((conflict) => conflict.column('name').doUpdateSet((e) => ({ value: e.ref('meta.value') })))
    .returning('value')
    .executeTakeFirstOrThrow();
  return Number(value);
}

/** Something else has the port: the instance gets another, and this one is tried again later. Null: none is free. */
export async function exchangePort(
  tx: Db,
  place: PortPlace,
  instance: string,
  refused: number | null,
  nowMs: number,
): Promise<number | null> {
  const project = tx
    .selectFrom('instance')
    .innerJoin('project', 'project.id', 'instance.project_id')
    .select('account_id')
    .where('instance.id', '=', instance);
  const accountId = (await project.executeTakeFirst())?.account_id;
  // One for another: its account needs no room for it.
  const [port] = await takePorts(tx, place, [instance], accountId === undefined ? null : { accountId, most: null });
  if (port === undefined) return null;
  await tx
    .updateTable('instance_port')
    .set({ freed_at: databaseNow(tx, nowMs) })
    .where('host', 'in', place.hosts)
    .where('port', '=', refused)
    .where('instance_id', '=', instance)
    .execute();
  await tx
    .updateTable('instance')
    .set({ host: hostOf(place.hosts), port })
    .where('id', '=', instance)
    .execute();
  return port;
}

/** Whichever way instances went, their ports are found here: an instance without a row has no port. */
export async function freePorts(db: Db, routers: RouterWatch, nowMs: number): Promise<void> {
  const now = databaseNow(db, nowMs);
  await db
    .updateTable('instance_port')
    .set((e) => ({
      freed_at: now,
      // The instance left the table at this version or before.
      freed_version: e
        .selectFrom('meta')
        .select((m) => m.fn.coalesce(m.fn.max(m.cast<number>('value', 'numeric')), m.lit(0)).as('version'))
        .where('name', '=', routingVersion),
    }))
    .where('freed_at', 'is', null)
    .where((e) =>
      e.not(e.exists(e.selectFrom('instance').select('id').whereRef('instance.id', '=', 'instance_port.instance_id'))),
    )
    .execute();
  await db
    .deleteFrom('instance_port')
    .where('freed_at', '<', sql<number>`${now} - ${sql.lit(quarantineMs)}`)
    .where('freed_version', '<=', await routers.leastInForce())
    .execute();
}

/**
 * Round robin: ports after the one that was given last come first, so that a freed port is reused as late as possible.
 * Fewer than asked for if there are no more. No I/O.
 */
export function nextPorts(range: PortRange, given: number, taken: ReadonlySet<number>, count: number): number[] {
  const start = isWithin(range, given) ? given - range.first + 1 : 0;
  const ports: number[] = [];
  for (let step = 0; step < sizeOf(range) && ports.length < count; step++) {
    const port = range.first + ((start + step) % sizeOf(range));
    if (!taken.has(port)) ports.push(port);
  }
  return ports;
}

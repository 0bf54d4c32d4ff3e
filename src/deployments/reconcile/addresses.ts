// The addresses that instances get before they are started, where their engine leaves that to us.
import type { Db } from '../../db/database.ts';
import type { InstanceRow } from '../instances.ts';
import { isWithin } from '../ports/next-ports.ts';
import { exchangePort, hostOf, takePorts } from '../ports/ports.ts';
import type { ObservedRegion, ReconcileContext } from './context.ts';

type Address = Pick<InstanceRow, 'host' | 'port'>;

/** Fewer than instances where no more ports are free: the others are started when there are. */
export async function takeAddresses(
  tx: Db,
  { instancePorts: range, log }: ReconcileContext,
  { name: region, engine: { publishesOn: hosts } }: ObservedRegion,
  instances: string[],
): Promise<Address[]> {
  if (hosts === null) return instances.map(() => ({ host: null, port: null }));
  const ports = await takePorts(tx, { hosts, range }, instances);
  const host = hostOf(hosts);
  if (ports.length < instances.length) log.warn({ region, ...range }, noneFree);
  return ports.map((port) => ({ host, port }));
}

const noneFree = 'no port is free for an instance: SLUICE_INSTANCE_PORTS is too small a range, or others use its ports';

/** Of an instance that is yet to be started: another one if it has none, or one of an earlier range. Null: none is free. */
export async function portOf(
  context: ReconcileContext,
  region: ObservedRegion,
  { id, port }: InstanceRow,
): Promise<{ hostPort: number | null } | null> {
  if (region.engine.publishesOn === null) return { hostPort: null };
  if (port !== null && isWithin(context.instancePorts, port)) return { hostPort: port };
  const hostPort = await changePort(context, region, id, port);
  return hostPort === null ? null : { hostPort };
}

/** Null where none is free, or the engine does not want one. */
export async function changePort(
  { lease, log, lasting, instancePorts: range }: ReconcileContext,
  { name: region, engine: { publishesOn: hosts } }: ObservedRegion,
  instance: string,
  refused: number | null,
): Promise<number | null> {
  if (hosts === null) return null;
  const port = await lease.write((tx) => exchangePort(tx, { hosts, range }, instance, refused, lasting.now()));
  if (port === null) log.warn({ region, ...range }, noneFree);
  else if (refused !== null)
    log.info({ instance, region, refused, port }, 'another program has the port of an instance');
  return port;
}

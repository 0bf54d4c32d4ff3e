// Which subnet a new network gets. Docker's own pools are enough for some thirty networks, so ours come from a range of
// their own. No I/O.
import { hash } from 'node:crypto';
import { parseRange, type Range, rangesOverlap } from '../../lib/address.ts';
import { invalid } from '../../lib/setting-parsers.ts';

export interface SubnetPool {
  base: Range;
  /** The length of the prefix of each subnet. */
  size: number;
}

/** Room for 512 projects with 125 instances each. */
export const defaultSubnetPool = 'base=10.213.0.0/16,size=25';

/**
 * The subnets that are free, beginning at a place of the project's own, or `turn` behind it, so that two who choose at once
 * rarely meet.
 */
export function* freeSubnets(
  { base, size }: SubnetPool,
  project: string,
  taken: readonly Range[],
  turn = 0,
): Generator<Range> {
  const count = 2 ** (size - base.prefix);
  const first = Number.parseInt(hash('sha256', project).slice(0, 8), 16) % count;
  const step = 1n << BigInt(base.bits - size);
  for (let n = 0; n < count; n++) {
    const value = base.value + step * BigInt((first + turn + n) % count);
    const subnet: Range = { bits: base.bits, value, prefix: size };
    if (!taken.some((other) => rangesOverlap(subnet, other))) yield subnet;
  }
}

/** A network that this machine has a route to: its own, or one of another engine. */
export interface Route {
  network: Range;
  device: string;
}

/** From the text of /proc/net/route. */
export function parseRoutes(text: string): Route[] {
  return text
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [device = '', destination, , , , , , mask] = line.trim().split(/\s+/);
      if (!destination || !mask || mask === '00000000') return [];
      const prefix = littleEndian(mask).toString(2).replaceAll('0', '').length;
      return [{ network: { bits: 32 as const, value: littleEndian(destination), prefix }, device }];
    });
}

/** Whether more than one network has addresses of the subnet: what is sent there may reach the other one. */
export function isShared(subnet: Range, routes: readonly Route[]): boolean {
  const within = routes.filter(({ network }) => rangesOverlap(subnet, network));
  return new Set(within.map(({ device }) => device)).size > 1;
}

const littleEndian = (hex: string): bigint => BigInt(`0x${hex.match(/../g)!.reverse().join('')}`);

/** A network has an address for itself, the gateway and the broadcast: in less there is no room for instances. */
const smallest = 29;

/** SLUICE_DOCKER_NETWORKS: `base=10.213.0.0/16,size=25`, as in Docker's own --default-address-pool. */
export function parseSubnetPool(value: string): SubnetPool {
  const [, text = '', sizeText = ''] = /^base=([^,]+),size=(\d{1,2})$/.exec(value) ?? [];
  const base = parseRange(text);
  const size = Number(sizeText);
  const isAligned = base !== null && base.value % (1n << BigInt(base.bits - base.prefix)) === 0n;
  if (base?.bits !== 32 || !isAligned || size < base.prefix || size > smallest) {
    return invalid(
      `must be a range of IPv4 and the size of each network, up to ${smallest}: base=10.213.0.0/16,size=25`,
    );
  }
  return { base, size };
}

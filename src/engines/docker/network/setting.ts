// SLUICE_DOCKER_NETWORKS: `base=10.213.0.0/16,size=25`, as Docker's own --default-address-pool.
import { parseRange } from '../../../lib/address.ts';
import { invalid } from '../../../lib/setting-parsers.ts';
import type { SubnetPool } from './subnets.ts';

/** A network has an address for itself, the gateway and the broadcast: in less there is no room for instances. */
const smallest = 29;

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

// Who asked, where a proxy stands in front of this one: what a trusted proxy says counts instead of its own address. A
// list of addresses is read from its end, because only what trusted proxies added to it can be relied on.
import { isAmong, parseAddress, type Range } from '../../lib/address.ts';
import { type Peer, peerFor } from './forwarding-headers.ts';

export function believedPeer(peer: Peer, raw: readonly string[], trusted: readonly Range[]): Peer {
  if (!isAmong(peer.address, trusted)) return peer;
  let chain = '';
  let proto = peer.proto;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase();
    if (name === 'x-forwarded-for') chain = chain === '' ? raw[i + 1]! : `${chain},${raw[i + 1]!}`;
    else if (name === 'x-forwarded-proto' && /^https?$/.test(raw[i + 1]!)) proto = raw[i + 1]!;
  }
  const told = chain.split(',').map((address) => address.trim());
  const address = told.findLast((one) => !isAmong(one, trusted));
  const isKnown = address !== undefined && parseAddress(address) !== null;
  return peerFor({ ...peer, address: isKnown ? address : peer.address, proto });
}

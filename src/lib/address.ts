// Internet addresses as numbers, and which of them are public. An IPv4 address inside an IPv6 one (mapped, compatible,
// NAT64, 6to4) is judged as the IPv4 address it leads to.
import { isIPv4, isIPv6 } from 'node:net';

export interface Address {
  bits: 32 | 128;
  value: bigint;
}

export interface Range extends Address {
  prefix: number;
}

/** Parses an address as DNS, sockets and URLs spell it; null for anything else. */
export function parseAddress(text: string): Address | null {
  if (isIPv4(text)) return { bits: 32, value: text.split('.').reduce((sum, part) => (sum << 8n) | BigInt(part), 0n) };
  if (!isIPv6(text) || text.includes('%')) return null;
  const dotted = /^(.*:)([^:]*\.[^:]*)$/.exec(text);
  const plain = dotted ? dotted[1] + groupsOf(parseAddress(dotted[2]!)!.value) : text;
  const [head = '', tail] = plain.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  const groups = tail === undefined ? left : [...left, ...zeros, ...right];
  return { bits: 128, value: groups.reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n) };
}

const groupsOf = (value: bigint): string => `${(value >> 16n).toString(16)}:${(value & 0xffffn).toString(16)}`;

/** `10.0.0.0/8`, `fd00::/8`; null for anything else. */
export function parseRange(text: string): Range | null {
  const [base = '', prefix = '', ...rest] = text.split('/');
  const address = parseAddress(base);
  if (!address || rest.length > 0 || !/^\d{1,3}$/.test(prefix) || Number(prefix) > address.bits) return null;
  return { ...address, prefix: Number(prefix) };
}

/** As `parseRange` reads it. */
export function rangeText({ bits, value, prefix }: Range): string {
  const size = bits === 32 ? 8n : 16n;
  const parts = Array.from(
    { length: bits / Number(size) },
    (_, i) => (value >> (BigInt(bits) - size * BigInt(i + 1))) & ((1n << size) - 1n),
  );
  return `${bits === 32 ? parts.join('.') : parts.map((part) => part.toString(16)).join(':')}/${prefix}`;
}

function isWithin({ bits, value }: Address, range: Range): boolean {
  const rest = BigInt(range.bits - range.prefix);
  return bits === range.bits && value >> rest === range.value >> rest;
}

/** Whether they have an address in common. */
export function rangesOverlap(one: Range, other: Range): boolean {
  const wider = one.prefix <= other.prefix ? one : other;
  return isWithin(wider === one ? other : one, wider);
}

const ranges = (...texts: string[]): Range[] => texts.map((text) => parseRange(text)!);

/** IPv6 ranges that contain an IPv4 address, and how many bits follow it. */
const carriers: [Range, bigint][] = [
  [parseRange('::ffff:0:0/96')!, 0n],
  [parseRange('::/96')!, 0n],
  [parseRange('64:ff9b::/96')!, 0n],
  [parseRange('2002::/16')!, 80n],
];

/** The address to which packets for this one are delivered. */
function destinationOf(address: Address): Address {
  for (const [range, shift] of carriers) {
    if (isWithin(address, range) && address.value > 1n) {
      return { bits: 32, value: (address.value >> shift) & 0xffff_ffffn };
    }
  }
  return address;
}

const loopback = ranges('127.0.0.0/8', '::1/128');

/** Everything IANA has reserved, and what clouds put in its place: this host, private networks, links, tests, documentation, multicast. */
const notPublic = ranges(
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32', // Azure's platform: inside every virtual machine, it answers for the host
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
  '2001::/23',
  '2001:db8::/32',
  '3fff::/20',
);
const globalUnicast = parseRange('2000::/3')!;

export function isLoopback(address: Address): boolean {
  const destination = destinationOf(address);
  return loopback.some((range) => isWithin(destination, range));
}

function isPublic(address: Address): boolean {
  const destination = destinationOf(address);
  if (destination.bits === 128 && !isWithin(destination, globalUnicast)) return false;
  return !notPublic.some((range) => isWithin(destination, range));
}

/** Whether this text is an address within one of the ranges. */
export function isAmong(text: string, ranges: readonly Range[]): boolean {
  const address = parseAddress(text);
  if (!address) return false;
  const destination = destinationOf(address);
  return ranges.some((range) => isWithin(destination, range) || isWithin(address, range));
}

const mapped = parseRange('::ffff:0:0/96')!;

/** Whom an address counts for. An IPv6 client has a /64 at least, so all addresses of one count together. */
export function networkOf(text: string): string {
  const address = parseAddress(text);
  if (!address) return text;
  if (address.bits === 32) return rangeText({ ...address, prefix: 32 });
  if (isWithin(address, mapped)) return rangeText({ bits: 32, value: address.value & 0xffff_ffffn, prefix: 32 });
  return rangeText({ bits: 128, value: (address.value >> 64n) << 64n, prefix: 64 });
}

export interface AddressPolicy {
  allowLoopback: boolean;
  /** Allowed although they are not public. */
  allowed: Range[];
}

/** Whether connecting to this address is allowed; false for text that is not an address. */
export const mayConnect = (text: string, policy: AddressPolicy): boolean =>
  isOpen(text, policy) || isAmong(text, policy.allowed);

/** Whether it is allowed only because the operator listed its range: what answers there is not for everyone's eyes. */
export const isOnlyListed = (text: string, policy: AddressPolicy): boolean =>
  !isOpen(text, policy) && isAmong(text, policy.allowed);

function isOpen(text: string, { allowLoopback }: AddressPolicy): boolean {
  const address = parseAddress(text);
  return address !== null && (isPublic(address) || (allowLoopback && isLoopback(address)));
}

// Ids are UUIDv7 in Crockford base32: 26 lowercase characters that sort by time, and within one process by creation.
import { randomFillSync } from 'node:crypto';
import type { Clock } from './clock.ts';

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';

export type IdSource = (prefix: string) => string;

export function createIds(clock: Clock): IdSource {
  const bytes = new Uint8Array(16);
  const random = createRandom();
  let lastMs = -1;
  return (prefix) => {
    const nowMs = clock.now();
    if (nowMs > lastMs) {
      lastMs = nowMs;
      random(bytes, 6);
      writeTime(bytes, nowMs);
      bytes[6] = 0x70 | (bytes[6]! & 0x0f);
      bytes[8] = 0x80 | (bytes[8]! & 0x1f);
    } else {
      increment(bytes);
    }
    return `${prefix}_${encodeBase32(bytes)}`;
  };
}

/** Takes random bytes from a pool, because a system call for a few costs as much as one for many. */
function createRandom(): (into: Uint8Array, from: number) => void {
  const pool = new Uint8Array(4096);
  let used = pool.length;
  return (into, from) => {
    const needed = into.length - from;
    if (used + needed > pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    for (let i = from; i < into.length; i++) into[i] = pool[used++]!;
  };
}

function writeTime(bytes: Uint8Array, ms: number): void {
  let rest = ms;
  for (let i = 5; i >= 0; i--) {
    bytes[i] = rest % 256;
    rest = Math.floor(rest / 256);
  }
}

/**
 * The next value within one millisecond. The step is random, so that one id does not reveal the next. A fresh value
 * leaves one bit of byte 8 clear, so that there is room for 2^61 above it.
 */
function increment(bytes: Uint8Array): void {
  let carry = 1 + Math.floor(Math.random() * 0xffffff);
  for (let i = 15; carry > 0 && i >= 9; i--) {
    carry += bytes[i]!;
    bytes[i] = carry & 0xff;
    carry = Math.floor(carry / 256);
  }
  if (carry > 0) bytes[8] = 0x80 | ((bytes[8]! + carry) & 0x3f);
}

/** Two characters at a time: ten bits. */
const pairs = Array.from({ length: 1024 }, (_, bits) => alphabet[bits >>> 5]! + alphabet[bits & 31]!);

export function encodeBase32(bytes: Uint8Array): string {
  let out = '';
  let buffer = 0;
  let bits = 2; // 128 bits fill 26 characters with two zero bits in front
  for (let i = 0; i < bytes.length; i++) {
    buffer = (buffer << 8) | bytes[i]!;
    bits += 8;
    if (bits < 10) continue;
    bits -= 10;
    out += pairs[buffer >>> bits];
    buffer &= (1 << bits) - 1;
  }
  return out;
}

/** Sorts before every id of this kind created at that time or later, and after every one created earlier. */
export function idFloor(prefix: string, ms: number): string {
  const bytes = new Uint8Array(16);
  writeTime(bytes, Math.max(0, ms));
  return `${prefix}_${encodeBase32(bytes)}`;
}

export const idPattern = (prefix: string) => `^${prefix}_[0-9a-hjkmnp-tv-z]{26}$`;

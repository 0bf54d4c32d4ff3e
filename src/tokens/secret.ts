// The format of a token: `slc_`, 30 random base62 characters, and 6 characters of their CRC-32, so that secret scanners
// can recognise a real token without calling the service.
import { hash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

export function newTokenSecret(): string {
  const body = Array.from({ length: 30 }, () => base62[randomInt(62)]).join('');
  return `slc_${body}${checksumOf(body)}`;
}

export function checksumOf(body: string): string {
  let rest = crc32(body);
  let out = '';
  for (let i = 0; i < 6; i++) {
    out = base62[rest % 62]! + out;
    rest = Math.floor(rest / 62);
  }
  return out;
}

export const hashOfSecret = (secret: string): string => hash('sha256', secret);

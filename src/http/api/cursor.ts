// A cursor holds the key of the last item of a page and a MAC over the list, its filters and the account, so that a cursor
// of another list, or a forged one, is refused.
import { timingSafeEqual } from 'node:crypto';
import { ApiError } from '../../contract/errors.ts';
import type { Seal } from '../../lib/seal.ts';

const macBytes = 12;

export function writeCursor(seal: Seal, list: string, after: string): string {
  const mac = seal.mac(`cursor\n${list}\n${after}`).subarray(0, macBytes);
  return Buffer.concat([mac, Buffer.from(after)]).toString('base64url');
}

export function readCursor(seal: Seal, list: string, cursor: string): string {
  const bytes = Buffer.from(cursor, 'base64url');
  const after = bytes.subarray(macBytes).toString();
  const mac = seal.mac(`cursor\n${list}\n${after}`).subarray(0, macBytes);
  if (bytes.length <= macBytes || !timingSafeEqual(bytes.subarray(0, macBytes), mac)) {
    throw new ApiError('invalid_cursor', 'The cursor does not belong to this list with these filters.', {
      details: [{ path: 'query.cursor', message: 'is not a cursor of this list' }],
    });
  }
  return after;
}

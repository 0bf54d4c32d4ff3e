// The Host header (RFC 9112, 3.2): a request has one, and with another number of them, or one that is no host, servers and
// caches along the way could disagree about what was asked for. Such a request is answered with 400.
import type { IncomingMessage } from 'node:http';

const host = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-f:.]+\])(?::\d*)?$/i;

/** Requests keep coming with the same few hosts: the last one that was right needs no second look. */
let lastRight = '';

function isHost(value: string): boolean {
  if (value === lastRight) return true;
  if (!host.test(value)) return false;
  lastRight = value;
  return true;
}

/** Node has answered a request of HTTP/1.1 without the header itself, and keeps the first of several. */
export function hasOneHost({ rawHeaders, headers }: IncomingMessage): boolean {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (name.length === 4 && name.toLowerCase() === 'host') count++;
  }
  return count <= 1 && (headers.host === undefined || isHost(headers.host));
}

// http-01 (RFC 8555, 8.3): a certificate authority fetches a file over plain HTTP, to see that the host name leads
// here. Challenges are answered for any host, before routing; requests that match no challenge are routed as usual.

import type { IncomingMessage } from 'node:http';
import type { Log } from '../../../lib/log.ts';
import type { ServerResponse } from '../../../lib/node-http.ts';
import { hostNameOf } from '../request/request-target.ts';
import type { Certificates } from './certificates.ts';

const folder = '/.well-known/acme-challenge/';
const token = /^[A-Za-z0-9_-]{1,200}$/;

/** Cheap, because it is called for every request. */
export const isChallenge = ({ method, url, socket }: IncomingMessage): boolean =>
  url!.startsWith(folder) &&
  (method === 'GET' || method === 'HEAD') &&
  !('encrypted' in socket) &&
  token.test(url!.slice(folder.length));

/** False where there is no such challenge: then nothing was sent. */
export async function answerChallenge(
  certificates: Certificates,
  log: Log,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<boolean> {
  const hostName = hostNameOf(request.headers.host ?? '');
  if (hostName === '') return false;
  let text: string | null = null;
  try {
    text = await certificates.answerChallenge(hostName, request.url!.slice(folder.length));
  } catch (error) {
    log.warn({ err: error, hostName }, 'a challenge could not be looked up');
  }
  if (text === null) return false;
  response.writeHead(200, {
    'content-type': 'application/octet-stream',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
  });
  response.end(text);
  return true;
}

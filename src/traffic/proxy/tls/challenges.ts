// http-01: a certificate authority asks over plain HTTP for a file that only whoever the name leads to can give (RFC 8555,
// 8.3). It is answered for any host, before routing; what is no challenge of ours goes on to the instances.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Log } from '../../../lib/log.ts';
import { hostNameOf } from '../request/request-target.ts';
import type { Certificates } from './certificates.ts';

const folder = '/.well-known/acme-challenge/';
const token = /^[A-Za-z0-9_-]{1,200}$/;

/** Cheap, because every request is asked. */
export const isChallenge = ({ method, url, socket }: IncomingMessage): boolean =>
  url!.startsWith(folder) &&
  (method === 'GET' || method === 'HEAD') &&
  !('encrypted' in socket) &&
  token.test(url!.slice(folder.length));

/** Answers it; false where it is none of ours. */
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

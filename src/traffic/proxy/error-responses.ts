// What the proxy says in its own name: short plain text that repeats nothing of the request, with a request id.
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { VisitorResponse } from './visitor.ts';

export interface OwnAnswer {
  status: number;
  text: string;
  retryAfterS?: number;
  location?: string;
  /** The connection ends with it. */
  closes?: boolean;
}

export const own = {
  unknownHost: { status: 404, text: 'nothing is deployed under this host name' },
  noInstance: { status: 503, text: 'no instance can answer at the moment', retryAfterS: 1 },
  badGateway: { status: 502, text: 'the instance did not give an answer' },
  timedOut: { status: 504, text: 'the instance did not answer in time' },
  misdirected: { status: 421, text: 'this connection was made for another host name' },
  badRequest: { status: 400, text: 'the request is malformed', closes: true },
  badEncoding: { status: 501, text: 'this transfer encoding is not supported', closes: true },
  badMethod: { status: 405, text: 'this method is not supported', closes: true },
  headTooLarge: { status: 431, text: 'the head of the request is too large', closes: true },
  tooSlow: { status: 408, text: 'the request did not arrive in time', closes: true },
} satisfies Record<string, OwnAnswer>;

const encoded = (path: string): string => path.replace(/[^\x21-\x7e]/g, (char) => encodeURIComponent(char));

/**
 * To the same address with TLS. 308 and not 301: a method stays what it is, so a POST does not become a GET. Like all our
 * own answers it is not stored, so nobody is sent on after the certificate has gone.
 */
export const moved = (hostName: string, port: number, path: string): OwnAnswer => ({
  status: 308,
  text: 'this address is served with TLS',
  location: `https://${hostName}${port === 443 ? '' : `:${port}`}${encoded(path)}`,
});

function headersOf({ text, retryAfterS, location }: OwnAnswer, requestId: string): [body: string, headers: string[]] {
  const body = `${text} (${requestId})\n`;
  const headers = ['content-type', 'text/plain; charset=utf-8', 'content-length', String(body.length)];
  headers.push('cache-control', 'no-store', 'x-content-type-options', 'nosniff', 'x-request-id', requestId);
  if (retryAfterS !== undefined) headers.push('retry-after', String(retryAfterS));
  if (location !== undefined) headers.push('location', location);
  return [body, headers];
}

export function answer(response: VisitorResponse, what: OwnAnswer, requestId: string, close: boolean): void {
  const [body, headers] = headersOf(what, requestId);
  if (close) headers.push('connection', 'close');
  response.writeHead(what.status, headers);
  response.end(body);
}

/** Where there is no request to answer, only bytes that are none: the last words on a connection. */
export function answerRaw(socket: Duplex, what: OwnAnswer, requestId: string): void {
  const [body, headers] = headersOf(what, requestId);
  let head = `HTTP/1.1 ${what.status} ${STATUS_CODES[what.status]}\r\nconnection: close\r\n`;
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  socket.end(`${head}\r\n${body}`, () => socket.destroy());
}

// Responses that come from the proxy itself: short plain text with a request id, which repeats nothing of the request.

import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { IdSource } from '../../lib/ids.ts';
import { STATUS_CODES } from '../../lib/node-http.ts';
import type { VisitorRequest, VisitorResponse } from './visitor-messages.ts';

export interface ErrorResponse {
  status: number;
  text: string;
  retryAfterS?: number;
  location?: string;
  /** The connection closes after it: where a request was not understood, what follows it may not be either. */
  closes?: boolean;
}

export const errorResponses = {
  unknownHost: { status: 404, text: 'nothing is deployed under this host name' },
  noInstance: { status: 503, text: 'no instance can answer at the moment', retryAfterS: 1 },
  badGateway: { status: 502, text: 'the instance did not give an answer' },
  timedOut: { status: 504, text: 'the instance did not answer in time' },
  misdirected: { status: 421, text: 'this connection was made for another host name' },
  badRequest: { status: 400, text: 'the request is malformed', closes: true },
  badEncoding: { status: 501, text: 'this transfer encoding is not supported', closes: true },
  badMethod: { status: 405, text: 'this method is not supported', closes: true },
  badExpectation: { status: 417, text: 'this expectation is not supported', closes: true },
  headTooLarge: { status: 431, text: 'the head of the request is too large', closes: true },
  tooSlow: { status: 408, text: 'the request did not arrive in time', closes: true },
} satisfies Record<string, ErrorResponse>;

const encoded = (path: string): string => path.replace(/[^\x21-\x7e]/g, (char) => encodeURIComponent(char));

/**
 * 308 and not 301, so that a POST does not become a GET. Like every response here it is not cached, so visitors are not
 * redirected any more once the certificate is gone.
 */
export const redirectToHttps = (hostName: string, port: number, path: string): ErrorResponse => ({
  status: 308,
  text: 'this address is served with TLS',
  location: `https://${hostName}${port === 443 ? '' : `:${port}`}${encoded(path)}`,
});

function headersOf(
  { text, retryAfterS, location }: ErrorResponse,
  requestId: string,
): [body: string, headers: string[]] {
  const body = `${text} (${requestId})\n`;
  const headers = ['content-type', 'text/plain; charset=utf-8', 'content-length', String(body.length)];
  headers.push('cache-control', 'no-store', 'x-content-type-options', 'nosniff', 'x-request-id', requestId);
  if (retryAfterS !== undefined) headers.push('retry-after', String(retryAfterS));
  if (location !== undefined) headers.push('location', location);
  return [body, headers];
}

export function sendErrorResponse(
  response: VisitorResponse,
  error: ErrorResponse,
  requestId: string,
  close: boolean,
): void {
  const [body, headers] = headersOf(error, requestId);
  if (close) headers.push('connection', 'close');
  response.writeHead(error.status, headers);
  response.end(body);
}

/** For a connection on which no request could be read. It is closed afterwards. */
export function sendRawErrorResponse(socket: Duplex, error: ErrorResponse, requestId: string): void {
  const [body, headers] = headersOf(error, requestId);
  let head = `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\nconnection: close\r\n`;
  for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
  socket.end(`${head}\r\n${body}`, () => socket.destroy());
}

/** A head that was not understood does not say reliably where the request ends, so the connection ends with it. Gives its id. */
export function refuseRequest(
  { ids, closing }: { ids: IdSource; closing: WeakSet<Socket> },
  request: VisitorRequest,
  response: VisitorResponse,
  error: ErrorResponse,
): string {
  const requestId = ids('req');
  if (request.httpVersion !== '2.0') closing.add(request.socket);
  sendErrorResponse(response, error, requestId, true);
  return requestId;
}

import type { Socket } from 'node:net';
import type { IdSource } from '../../lib/ids.ts';
import { type ErrorResponse, sendErrorResponse } from './error-responses.ts';
import type { VisitorRequest, VisitorResponse } from './visitor-messages.ts';

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

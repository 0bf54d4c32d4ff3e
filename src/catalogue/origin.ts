// The built-in origin: serves a catalogue over HTTP by the rules of header-rules.ts. It is a request handler without a
// server, so that the service can mount it on its own.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { hasOneHost, requestPath } from '../lib/request-rules.ts';
import { StaticFiles } from '../lib/static-files.ts';
import type { FileRules, StoredFile } from '../lib/stored-files.ts';
import { allowedMethods, cacheControl, classOf, commonHeaders, preflightHeaders, typeOf } from './header-rules.ts';
import { hasForms, isText } from './site-texts.ts';

export interface Origin {
  /** With `missing`, it answers where there is no such file. */
  handle(request: IncomingMessage, response: ServerResponse, missing?: () => void): void;
  /** Waits for large files that are being sent. */
  close(): Promise<void>;
}

const rules: FileRules = {
  commonHeaders: commonHeaders.flat(),
  cacheControlOf: (path) => cacheControl[classOf(path)],
  typeOf,
  hasCompressedForms: hasForms,
  // A publish replaces texts, and a response must not begin with one version and end with the next: they are sent from
  // memory up to a size that no catalogue reaches. Media never changes.
  maxBytesInMemory: (path) => (isText(path) ? 16 * 1024 * 1024 : 256 * 1024),
};

const preflight = [...rules.commonHeaders, 'Cache-Control', 'no-store', ...preflightHeaders.flat()];

export function createOrigin(root: string): Origin {
  const files = new StaticFiles(root, rules);

  const serve = (request: IncomingMessage, response: ServerResponse, missing?: () => void): void => {
    const send = (file: StoredFile | null) => {
      if (file !== null) files.send(request, response, file);
      else if (missing) missing();
      else files.sendError(request, response, 404);
    };
    const path = requestPath(request.url);
    if (path === null) send(null);
    else files.find(request, path, send);
  };

  const handle = (request: IncomingMessage, response: ServerResponse, missing?: () => void): void => {
    const { method } = request;
    if (!hasOneHost(request)) files.sendError(request, response, 400, ['Connection', 'close']);
    else if (method === 'GET' || method === 'HEAD') serve(request, response, missing);
    else {
      // Discards the body, so that the connection can be used again.
      request.resume();
      if (method === 'OPTIONS') response.writeHead(204, preflight).end();
      else files.sendError(request, response, 405, ['Allow', allowedMethods]);
    }
  };

  return { handle, close: () => files.close() };
}

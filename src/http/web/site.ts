// The catalogue on the service's own port: every path that does not belong to the service is a file of the site.
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { originForm } from '../../lib/request-rules.ts';

const ofTheService = /^\/(?:v1|docs|console|livez|readyz|metrics|local-ca\.pem)(?:[/?]|$)/;

/** Puts the site's handler in front of the server's own listener, so that its responses bypass Fastify. */
export function mountSite(
  server: Server,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  endsConnections: () => boolean,
): void {
  const [service] = server.listeners('request') as RequestListener[];
  server.removeAllListeners('request');
  server.on('request', (request, response) => {
    if (ofTheService.test(originForm(request.url!))) return service!(request, response as never);
    if (endsConnections()) response.shouldKeepAlive = false;
    handle(request, response);
  });
}

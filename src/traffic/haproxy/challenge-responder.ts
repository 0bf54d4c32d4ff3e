// Answers http-01 challenges (RFC 8555, 8.3), which HAProxy passes on to this process.
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Log } from '../../lib/log.ts';
import { createServer } from '../../lib/node-http.ts';
import type { CertificateSource } from '../certificates.ts';
import { hostNameOf } from '../proxy/request/request-target.ts';

const folder = '/.well-known/acme-challenge/';

export async function startChallengeResponder(
  socketPath: string,
  source: CertificateSource | null,
  log: Log,
): Promise<{ stop(): Promise<void> }> {
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    const text = await source
      ?.answerChallenge(hostNameOf(request.headers.host ?? ''), (request.url ?? '').slice(folder.length))
      .catch((error: unknown) => {
        log.warn({ err: error }, 'a challenge could not be looked up');
        return null;
      });
    const status = typeof text === 'string' ? 200 : 404;
    const body = text ?? 'there is no such challenge\n';
    response.writeHead(status, {
      'content-type': 'application/octet-stream',
      'cache-control': 'no-store',
      'content-length': Buffer.byteLength(body),
    });
    response.end(body);
  };
  const server = createServer((request, response) => void respond(request, response));
  await rm(socketPath, { force: true });
  server.listen({ path: socketPath, readableAll: false, writableAll: false });
  await once(server, 'listening');
  return {
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

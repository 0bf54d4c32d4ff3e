// The web console: the files that the build put into a folder. Every other path below /console gets the page, which
// chooses what to show by the address.
import type { IncomingMessage } from 'node:http';
import { extname, join } from 'node:path';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { installDir } from '../lib/install.ts';
import { requestPath } from '../lib/request-rules.ts';
import { StaticFiles } from '../lib/static-files.ts';
import type { FileRules, StoredFile } from '../lib/stored-files.ts';

const builtFolder = join(installDir, 'console/dist');
const prefix = '/console';
const page = 'index.html';

const policy = [
  "default-src 'none'",
  ...['script-src', 'style-src', 'media-src', 'connect-src', 'font-src'].map((kind) => `${kind} 'self'`),
  "img-src 'self' data:",
  ...['base-uri', 'form-action', 'frame-ancestors'].map((kind) => `${kind} 'none'`),
].join('; ');

const headers = {
  'content-security-policy': policy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** The build puts a hash of the content into the names of these. */
const isAsset = (path: string) => path.startsWith('assets/');

const rules: FileRules = {
  commonHeaders: Object.entries(headers).flat(),
  cacheControlOf: (path) => (isAsset(path) ? 'public, max-age=31536000, immutable' : 'no-cache'),
  typeOf: (path) => types[extname(path)]!,
  hasCompressedForms: () => true,
  maxBytesInMemory: () => Number.POSITIVE_INFINITY,
};

export function mountConsole(server: FastifyInstance, folder = builtFolder): void {
  const files = new StaticFiles(folder, rules);
  const find = (request: IncomingMessage, path: string) =>
    new Promise<StoredFile | null>((resolve) => files.find(request, path, resolve));

  const handle = async (request: FastifyRequest, reply: FastifyReply) => {
    reply.headers(headers);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return reply.code(405).header('allow', 'GET, HEAD').type('text/plain').send('The console takes GET and HEAD.\n');
    }
    const path = requestPath(request.url.slice(prefix.length)) ?? page;
    const file = extname(path) in types ? await find(request.raw, path) : null;
    const found = file ?? (await find(request.raw, page));
    if (!found) return sendNotBuilt(reply);
    if (!file && isAsset(request.url.slice(prefix.length + 1))) {
      return reply.code(404).header('cache-control', 'no-store').type('text/plain').send('No such file.\n');
    }
    // From here on the response is ours; what hooks have set so far goes with it.
    reply.hijack();
    for (const [name, value] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value!);
    if (!server.server.listening) reply.raw.setHeader('connection', 'close');
    files.send(request.raw, reply.raw, found);
  };
  // As a hook, so that it answers before Fastify would read a body.
  for (const url of [prefix, `${prefix}/*`]) server.all(url, { onRequest: handle }, handle);
}

function sendNotBuilt(reply: FastifyReply): FastifyReply {
  const text = 'The console is not built. Run `npm run build` where the service is installed, then reload.\n';
  return reply.code(503).header('cache-control', 'no-store').header('retry-after', '5').type('text/plain').send(text);
}

// The web console: a few built files, held in memory. Any other path below /console is the page itself, which finds its
// way by the address. Only what was read from the folder is ever sent, so no path leads anywhere else.
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { acceptedEncodings, type Encoding, suffixOf } from '../../catalogue/origin/encoding.ts';

const builtFolder = fileURLToPath(new URL('../../../console/dist/', import.meta.url));

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

interface BuiltFile {
  type: string;
  bytes: Buffer;
  compressed: Partial<Record<Encoding, Buffer>>;
  etag: string;
  /** Its name holds a hash of its content. */
  immutable: boolean;
}

async function readBuilt(folder: string): Promise<Map<string, BuiltFile>> {
  const files = new Map<string, BuiltFile>();
  const names = new Set(await readdir(folder, { recursive: true }));
  for (const name of names) {
    const type = types[extname(name)];
    if (type === undefined) continue;
    const bytes = await readFile(folder + name);
    const compressed: BuiltFile['compressed'] = {};
    for (const coding of ['br', 'gzip'] as const) {
      const stored = name + suffixOf[coding];
      if (names.has(stored)) compressed[coding] = await readFile(folder + stored);
    }
    const etag = createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
    files.set(name, { type, bytes, compressed, etag, immutable: name.startsWith('assets/') });
  }
  return files;
}

export function mountConsole(server: FastifyInstance, folder = builtFolder): void {
  let files: Promise<Map<string, BuiltFile>> | null = null;
  const built = () => {
    files ??= readBuilt(folder).catch(() => new Map());
    return files;
  };

  const handle = async (request: FastifyRequest, reply: FastifyReply) => {
    reply.headers(headers);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return reply.code(405).header('allow', 'GET, HEAD').type('text/plain').send('The console takes GET and HEAD.\n');
    }
    const path = request.url.split('?', 1)[0]!.slice('/console/'.length);
    const all = await built();
    const page = all.get('index.html');
    if (!page) {
      files = null; // it may be built by the next request
      const text = 'The console is not built. Run `npm run console` where the service is installed, then reload.\n';
      return reply
        .code(503)
        .header('cache-control', 'no-store')
        .header('retry-after', '5')
        .type('text/plain')
        .send(text);
    }
    const file = all.get(path) ?? (path.startsWith('assets/') ? undefined : page);
    if (!file) return reply.code(404).header('cache-control', 'no-store').type('text/plain').send('No such file.\n');
    return send(file, request, reply);
  };
  // As a hook it answers before a body would be read: nothing here takes one.
  for (const url of ['/console', '/console/*']) server.all(url, { onRequest: handle }, handle);
}

function send(file: BuiltFile, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const coding = acceptedEncodings(request.headers['accept-encoding']).find((each) => file.compressed[each]);
  const etag = coding === undefined ? `"${file.etag}"` : `"${file.etag}-${coding}"`;
  reply
    .header('vary', 'Accept-Encoding')
    .header('etag', etag)
    .header('cache-control', file.immutable ? 'public, max-age=31536000, immutable' : 'no-cache');
  const known = (request.headers['if-none-match'] ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  if (known.includes(etag)) return reply.code(304).send();
  if (coding === undefined) return reply.type(file.type).send(file.bytes);
  return reply.type(file.type).header('content-encoding', coding).send(file.compressed[coding]);
}

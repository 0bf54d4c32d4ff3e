// Requests that stay under way for as long as a test likes: uploads, downloads, tunnels, and streams of HTTP/2.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:http2';
import { after } from 'node:test';
import { Wire } from './raw-http.ts';
import { getRequest, host, startInstance, type TestInstance } from './router.ts';
import { until } from './wait.ts';

export interface HeldRequest {
  kind: string;
  /** Of its connection: the router's, and the visitor's own. */
  port: number;
  localPort: number;
  isCut(): boolean;
  /** It goes on now; resolves when it has ended as it should. */
  finish(): Promise<void>;
}

export interface HoldingInstance extends TestInstance {
  /** Ends the response to this path. */
  release(path: string): void;
}

/** It responds to uploads with their length; to a GET of `/held-…` when the test says so; upgrades are an echo. */
export async function startHoldingInstance(): Promise<HoldingInstance> {
  const held = new Map<string, ServerResponse>();
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method === 'GET' && request.url!.startsWith('/held-')) {
      held.set(request.url!, response);
      response.write('begun, ');
    } else response.end(`${(await request.toArray()).join('').length} bytes`);
  };
  const instance = await startInstance((request, response) => void answer(request, response).catch(() => {}));
  instance.server.on('upgrade', (_request, socket) => {
    socket.on('error', () => {});
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
    socket.pipe(socket);
  });
  return { ...instance, release: (path) => void held.get(path)!.end('ended') };
}

let paths = 0;
const newPath = () => `/held-${++paths}`;

async function openWire(port: number, text: string): Promise<Wire> {
  const wire = new Wire(port);
  after(() => wire.socket.destroy());
  await once(wire.socket, 'connect');
  wire.write(text);
  return wire;
}

const describe = (kind: string, wire: Wire) => ({
  kind,
  port: wire.socket.remotePort!,
  localPort: wire.socket.localPort!,
  isCut: () => wire.closed,
});

export async function holdUpload(port: number, instance: HoldingInstance): Promise<HeldRequest> {
  const path = newPath();
  const wire = await openWire(port, `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 10\r\n\r\nhello`);
  await until('the upload to begin', () => instance.seen.some(({ url }) => url === path));
  const finish = async () => {
    wire.write('world');
    await wire.until('the end of the upload', () => wire.text.endsWith('10 bytes'));
    wire.socket.end();
  };
  return { ...describe('upload', wire), finish };
}

export async function holdDownload(port: number, instance: HoldingInstance): Promise<HeldRequest> {
  const path = newPath();
  const wire = await openWire(port, getRequest(path, 'Connection: close\r\n'));
  await wire.until('the download to begin', () => wire.text.includes('begun, '));
  const finish = async () => {
    instance.release(path);
    assert.match(await wire.untilClosed(), /ended/);
  };
  return { ...describe('download', wire), finish };
}

export async function holdTunnel(port: number): Promise<HeldRequest> {
  const wire = await openWire(port, getRequest('/', 'Connection: Upgrade\r\nUpgrade: echo\r\n'));
  await wire.until('a tunnel', () => wire.text.includes('101'));
  const finish = async () => {
    wire.write('still here');
    await wire.until('an echo', () => wire.text.endsWith('still here'));
    wire.socket.end();
  };
  return { ...describe('tunnel', wire), finish };
}

/** Two streams of one HTTP/2 session: an upload and a download. */
export async function holdStreams(port: number, instance: HoldingInstance): Promise<HeldRequest> {
  const session = connect(`https://${host}:${port}`, {
    servername: host,
    rejectUnauthorized: false, // the local CA is known to this service only
    lookup: (_name, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]),
  });
  after(() => session.destroy());
  session.on('error', () => {}); // its streams fail too
  await once(session, 'connect');
  const [up, down] = [newPath(), newPath()];
  const upload = session.request({ ':method': 'POST', ':path': up });
  upload.write('hello');
  const download = session.request({ ':path': down });
  await once(download, 'response');
  await until('the upload to begin', () => instance.seen.some(({ url }) => url === up));
  const finish = async () => {
    upload.end('world');
    instance.release(down);
    const texts = await Promise.all([upload, download].map(async (stream) => (await stream.toArray()).join('')));
    assert.deepEqual(texts, ['10 bytes', 'begun, ended']);
  };
  return {
    kind: 'streams of HTTP/2',
    port,
    localPort: session.socket.localPort!,
    isCut: () => session.destroyed || upload.destroyed || download.destroyed,
    finish,
  };
}

// A data plane with TLS, with certificates from a test authority, and clients that trust that authority.
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect as connectHttp2, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2';
import { Agent, request } from 'node:https';
import { after } from 'node:test';
import { connect, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { systemClock } from '../../src/lib/clock.ts';
import type { CertificateSource, StoredCertificate } from '../../src/traffic/data-plane.ts';
import type { ProxyLimits } from '../../src/traffic/proxy/limits.ts';
import type { Certificates } from '../../src/traffic/proxy/tls-listener.ts';
import { host, share, startInstance, startRouter, type TestInstance } from './router.ts';
import { ca, type Issued, issue } from './router-certificates.ts';
import type { TestRouter } from './router-plane.ts';

export class TestCertificates implements Certificates, CertificateSource {
  readonly issued = new Map<string, Issued>();
  /** Tells those who keep certificates of their own. */
  onChanged: (name: string) => Promise<void> = async () => {};
  readonly contexts = new Map<string, SecureContext>();
  readonly challenges = new Map<string, string>();
  readonly asked: string[] = [];

  /** Issues a certificate for a host name and serves it from now on. */
  async renew(name: string): Promise<Issued> {
    const issued = await issue(name);
    this.contexts.set(name, createSecureContext({ cert: issued.certificate, key: issued.key }));
    this.issued.set(name, issued);
    await this.onChanged(name);
    return issued;
  }

  async remove(name: string): Promise<void> {
    this.contexts.delete(name);
    this.issued.delete(name);
    await this.onChanged(name);
  }

  async contextFor(name: string): Promise<SecureContext | null> {
    this.asked.push(name);
    return this.contexts.get(name) ?? null;
  }

  async find(name: string, known: string | null): Promise<StoredCertificate | 'current' | null> {
    const issued = this.issued.get(name);
    if (!issued) return null;
    return issued.serial === known
      ? 'current'
      : { id: issued.serial, chainPem: issued.certificate, keyPem: issued.key };
  }

  async answerChallenge(name: string, token: string): Promise<string | null> {
    return this.challenges.get(`${name} ${token}`) ?? null;
  }
}

export interface TestTlsRouter extends TestRouter {
  certificates: TestCertificates;
  tls: number;
}

export async function startTlsRouter(
  limits: Partial<ProxyLimits> = {},
  redirect: { port: number | null } | null = null,
): Promise<TestTlsRouter> {
  const certificates = new TestCertificates();
  await certificates.renew(host);
  const router = await startRouter(limits, systemClock, { certificates, redirect });
  return { ...router, certificates, tls: router.tlsPort()! };
}

/** Starts a router with TLS and one instance behind it. */
export async function serveTls(
  answer: RequestListener,
  ...options: Parameters<typeof startTlsRouter>
): Promise<TestTlsRouter & { instance: TestInstance }> {
  const router = await startTlsRouter(...options);
  const instance = await startInstance(answer);
  await router.serve(share(1, 100, instance));
  return { ...router, instance };
}

interface Reply {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
  trailers: IncomingHttpHeaders;
  informed: IncomingHttpHeaders[];
}

interface Question {
  method?: string;
  path?: string;
  headers?: OutgoingHttpHeaders;
  body?: Buffer | string;
}

/** An HTTP/2 session, which ends with the test file. */
export async function openSession(port: number, servername = host, maxSessionMemory = 1000) {
  const session = connectHttp2(`https://${servername}:${port}`, {
    ca,
    servername,
    maxSessionMemory,
    lookup: (_name, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]),
  });
  after(() => session.destroy());
  await once(session, 'connect');
  session.on('error', () => {}); // the streams of a failed session fail too, and their tests notice
  const open = ({ method = 'GET', path = '/', headers = {}, body }: Question = {}) =>
    session.request({ ':method': method, ':path': path, ...headers }, { endStream: body === undefined });
  const ask = async (question: Question = {}): Promise<Reply> => {
    const stream = open(question);
    const reply: Reply = { status: 0, headers: {}, body: Buffer.alloc(0), trailers: {}, informed: [] };
    stream.on('headers', (headers) => reply.informed.push(headers));
    stream.on('trailers', (headers) => Object.assign(reply.trailers, headers));
    const answered = once(stream, 'response');
    // Read from the start: where the session ends right after the response, Node drops what is still unread.
    const body = stream.toArray();
    body.catch(() => {}); // that it failed is noticed below
    if (question.body !== undefined) stream.end(question.body);
    const closed = once(stream, 'close').then(() => Promise.reject(new Error('closed without a response')));
    reply.headers = (await Promise.race([answered, closed]))[0];
    closed.catch(() => {}); // it also closes after its response
    reply.status = Number(reply.headers[':status']);
    reply.body = Buffer.concat(await body);
    return reply;
  };
  return { session, open, ask };
}

/** Sends a request over HTTP/1.1 and TLS, on a connection of its own unless an agent is given. */
export async function askTls(
  port: number,
  { method = 'GET', path = '/', headers = {}, body }: Question = {},
  { name = host, agent = new Agent({ keepAlive: false }) }: { name?: string; agent?: Agent } = {},
): Promise<{ status: number; headers: IncomingHttpHeaders; body: Buffer; serial: string; clientPort: number }> {
  const outgoing = request({
    ...{ port, agent, method, path, ca, host: '127.0.0.1', servername: name },
    headers: { host: name, ...headers },
  });
  outgoing.end(body);
  const [incoming] = await once(outgoing, 'response');
  const socket = incoming.socket as TLSSocket;
  const { serialNumber: serial } = socket.getPeerCertificate();
  const clientPort = socket.localPort!;
  return {
    status: incoming.statusCode,
    headers: incoming.headers,
    body: Buffer.concat(await incoming.toArray()),
    serial,
    clientPort,
  };
}

/** The socket, or the error that its handshake failed with. */
export async function handshake(port: number, options: object): Promise<TLSSocket | NodeJS.ErrnoException> {
  const socket = connect({ port, host: '127.0.0.1', ca, ...options });
  after(() => socket.destroy());
  return new Promise((resolve) => {
    socket.once('secureConnect', () => resolve(socket));
    socket.once('error', resolve);
    socket.once('close', () => resolve(new Error('closed without an error')));
  });
}

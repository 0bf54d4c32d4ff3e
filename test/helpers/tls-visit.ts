// A visitor of a domain, without DNS: it connects to loopback, and trusts only the given root.
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { request as requestTls } from 'node:https';
import { connect, type PeerCertificate, type TLSSocket } from 'node:tls';

export interface TlsVisitor {
  port: number;
  /** PEM. */
  root: string;
}

/** The certificate that a visitor gets, after it was verified. */
export async function handshake({ port, root }: TlsVisitor, servername: string): Promise<PeerCertificate> {
  const socket = connect({ host: '127.0.0.1', port, servername, ca: root, ALPNProtocols: ['http/1.1'] });
  try {
    await once(socket, 'secureConnect');
    return socket.getPeerCertificate();
  } finally {
    socket.destroy();
  }
}

async function textOf(answer: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of answer) text += chunk;
  return text;
}

/** One request on a connection of its own. */
export async function visitTls({ port, root }: TlsVisitor, hostname: string, path = '/') {
  const options = { host: '127.0.0.1', port, path, servername: hostname, ca: root, agent: false };
  const ask = requestTls({ ...options, headers: { host: hostname } });
  ask.end();
  const [answer] = (await once(ask, 'response')) as [IncomingMessage];
  const serial = (answer.socket as TLSSocket).getPeerCertificate().serialNumber;
  return { status: answer.statusCode!, headers: answer.headers, serial, body: await textOf(answer) };
}

/** One request without TLS. */
export async function visitPlain(port: number, hostname: string, path = '/') {
  const ask = request({ host: '127.0.0.1', port, path, agent: false, headers: { host: hostname } });
  ask.end();
  const [answer] = (await once(ask, 'response')) as [IncomingMessage];
  return { status: answer.statusCode!, headers: answer.headers, body: await textOf(answer) };
}

/** Sends requests without pause until stopped; collects failures and the serial numbers of the certificates it got. */
export function tlsLoad(visitor: TlsVisitor, hostname: string, clients = 4) {
  let stopped = false;
  let visits = 0;
  const failed: string[] = [];
  const serials = new Set<string>();
  const running = Array.from({ length: clients }, async () => {
    while (!stopped) {
      visits++;
      try {
        const { status, serial, body } = await visitTls(visitor, hostname);
        if (status === 200) serials.add(serial.toLowerCase());
        else failed.push(`${status} ${body}`);
      } catch (error) {
        failed.push(String(error));
      }
    }
  });
  return {
    serials,
    visits: () => visits,
    async stop() {
      stopped = true;
      await Promise.all(running);
      return { visits, failed };
    },
  };
}

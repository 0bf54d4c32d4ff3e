// TLS for visitors. The certificate is looked up at every handshake by the host name in it (SNI), so a new one serves
// the next connection and does not affect open ones. Versions and cipher suites are those of Mozilla's "intermediate"
// configuration without finite-field Diffie-Hellman, which no current client needs and which costs the most.
import type { Socket } from 'node:net';
import { createServer, type SecureContext, type Server, type TLSSocket } from 'node:tls';
import type { Log } from '../../lib/log.ts';
import { codeOf } from './failures.ts';
import { hostNameOf } from './headers.ts';

/** Certificates as handshakes use them. */
export interface Certificates {
  /** Called at every handshake with the host name the visitor asks for, in lower case; null: no domain here has it. */
  contextFor(hostname: string): Promise<SecureContext | null>;
  /** The response to an http-01 challenge of a certificate authority; null: there is no such challenge. */
  answerChallenge(hostname: string, token: string): Promise<string | null>;
}

const ciphers = [
  ...['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'],
  ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-AES256-GCM-SHA384'],
  ...['ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
].join(':');
const curves = 'X25519MLKEM768:X25519:prime256v1:secp384r1';
/** A leaked ticket key exposes the sessions of its tickets, so a ticket lasts an hour and a key a day. */
const ticketSeconds = 3600;

/** The fatal alert unrecognized_name (RFC 6066), unencrypted like the rest of the handshake up to this point. */
const unrecognizedName = Buffer.from([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x70]);

interface TlsListenerOptions {
  certificates: Certificates;
  log: Log;
  handshakeMs: number;
  /** Called with each connection after its handshake. */
  onSecure(socket: TLSSocket): void;
}

interface TlsListener {
  server: Server;
  /** Closes every connection at once. */
  destroyAll(): void;
}

export function createTlsListener({ certificates, log, handshakeMs, onSecure }: TlsListenerOptions): TlsListener {
  const sockets = new Set<Socket>();
  const server = createServer({
    minVersion: 'TLSv1.2',
    ciphers,
    ecdhCurve: curves,
    honorCipherOrder: false, // all are secure, and the visitor knows which are fast on its machine
    ALPNProtocols: ['h2', 'http/1.1'],
    handshakeTimeout: handshakeMs,
    sessionTimeout: ticketSeconds,
    noDelay: true,
    SNICallback: sniCallback(certificates, log),
  });
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  // Any client can cause as many of these as it likes, so they are not logged by default.
  server.on('tlsClientError', (error, socket) => {
    log.debug({ code: codeOf(error) }, 'a handshake failed');
    socket.destroy();
  });
  server.on('secureConnection', (socket) => {
    // Only now: a visitor that leaves during the handshake is gone, and would be kept until the handshake's time is up.
    socket.allowHalfOpen = true;
    onSecure(socket);
  });
  return {
    server,
    destroyAll() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

type Done = (error: Error | null, context?: SecureContext) => void;
const refusal = new Error('no certificate for this name');

function sniCallback(certificates: Certificates, log: Log) {
  return function choose(this: unknown, name: string, done: Done): void {
    const refuse = () => {
      sendAlert(this);
      done(refusal);
    };
    const hostName = hostNameOf(name);
    if (hostName === '') {
      refuse();
      return;
    }
    certificates.contextFor(hostName).then(
      (context) => (context === null ? refuse() : done(null, context)),
      (error) => {
        log.warn({ err: error, hostName }, 'a certificate could not be read');
        refuse();
      },
    );
  };
}

/**
 * Node has no API to send an alert, and closes the connection without one. It calls the SNI callback on the TLS socket,
 * below which is the plain one. Should Node change that, visitors see a closed connection instead of the alert.
 */
function sendAlert(connection: unknown): void {
  const plain = (connection as { _handle?: { _parentWrap?: Socket } | null } | undefined)?._handle?._parentWrap;
  if (plain?.writable) plain.write(unrecognizedName);
}

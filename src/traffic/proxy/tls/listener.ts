// TLS towards visitors. The certificate is asked for at every handshake by the name the visitor wants (SNI), so a new one
// serves the next connection and disturbs no open one. Versions and suites are those of Mozilla's "intermediate" advice
// without finite-field Diffie-Hellman, which nobody needs any more and which costs the most.
import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { createServer, type SecureContext, type Server, type TLSSocket } from 'node:tls';
import type { Log } from '../../../lib/log.ts';
import { codeOf } from '../failures.ts';
import { hostNameOf } from '../request-target.ts';
import type { Certificates } from './certificates.ts';

const ciphers = [
  ...['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'],
  ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-AES256-GCM-SHA384'],
  ...['ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
].join(':');
const curves = 'X25519MLKEM768:X25519:prime256v1:secp384r1';
/** What a ticket's key can open is lost with it: an hour of resumption is worth a day of keys, not more. */
const ticketSeconds = 3600;
const ticketKeyMs = 24 * 3600_000;

/** A fatal alert, unrecognized_name (RFC 6066), in the clear, as all of a handshake is up to this point. */
const unrecognizedName = Buffer.from([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x70]);

export interface TlsListenerOptions {
  certificates: Certificates;
  log: Log;
  handshakeMs: number;
  /** A connection whose handshake is done. */
  onSecure(socket: TLSSocket): void;
}

export interface TlsListener {
  server: Server;
  /** Cuts off every connection, whatever it is doing. */
  destroyAll(): void;
}

export function createTlsListener({ certificates, log, handshakeMs, onSecure }: TlsListenerOptions): TlsListener {
  const sockets = new Set<Socket>();
  const server = createServer({
    minVersion: 'TLSv1.2',
    ciphers,
    ecdhCurve: curves,
    honorCipherOrder: false, // all are good; a visitor knows which of them its machine is fast at
    ALPNProtocols: ['h2', 'http/1.1'],
    handshakeTimeout: handshakeMs,
    sessionTimeout: ticketSeconds,
    noDelay: true,
    SNICallback: sniCallback(certificates, log),
  });
  const rotation = setInterval(() => server.setTicketKeys(randomBytes(48)), ticketKeyMs).unref();
  server.once('close', () => clearInterval(rotation));
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  // Anybody can cause these, as many as they like: they are not worth a line in the log each.
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
 * Node offers no way to choose the alert, and closes without one. It calls the callback on the connection itself, and
 * below that lies the plain one. Were that to change, visitors would see a closed connection instead of a reason.
 */
function sendAlert(connection: unknown): void {
  const plain = (connection as { _handle?: { _parentWrap?: Socket } | null } | undefined)?._handle?._parentWrap;
  if (plain?.writable) plain.write(unrecognizedName);
}

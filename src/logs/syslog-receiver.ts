// Syslog as of RFC 5424, over UDP, TCP or TLS; over the latter two with the length in front (RFC 6587, RFC 5425).
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { revisionId } from '../contract/references.ts';
import type { Receiver, ShippedLine } from './log-shipper.ts';
import type { LogLevel } from './read/line-fields.ts';

export interface SyslogAddress {
  transport: 'udp' | 'tcp' | 'tls';
  host: string;
  port: number;
}

const user = 1; // the facility
const severities: Record<LogLevel, number> = { fatal: 2, error: 3, warn: 4, info: 6, debug: 7, trace: 7 };
/** The number that RFC 5612 keeps for examples: Sluice has none of its own. */
const enterprise = 32_473;
const withinMs = 10_000;
/** What fits into one packet on most networks is less, but every receiver has to take this. */
const maxDatagramBytes = 2048;

const escaped = (value: string): string => value.replaceAll(/["\\\]]/g, '\\$&');

export function syslogMessage({ instance, time, stream, text, level }: ShippedLine): string {
  const { key, id, revision } = instance;
  const priority = user * 8 + severities[level ?? 'info'];
  const fields = { project: key.projectId, environment: key.environment, revision: revisionId(revision), instance: id };
  const data = Object.entries(fields).map(([name, value]) => `${name}="${escaped(value)}"`);
  const at = `${time.slice(0, 26)}Z`; // microseconds are the finest it allows
  return `<${priority}>1 ${at} ${key.projectId} ${key.environment} ${id} ${stream} [sluice@${enterprise} ${data.join(' ')}] ${text}`;
}

export function syslogReceiver(address: SyslogAddress): Receiver {
  const link = address.transport === 'udp' ? datagrams(address) : stream(address);
  return {
    name: 'syslog',
    send: (lines) => link.send(lines.map((line) => Buffer.from(syslogMessage(line)))),
    close: () => link.close(),
  };
}

interface Link {
  send(messages: Buffer[]): Promise<void>;
  close(): void;
}

function datagrams({ host, port }: SyslogAddress): Link {
  let socket: UdpSocket | null = null;
  return {
    async send(messages) {
      socket ??= createSocket(host.includes(':') ? 'udp6' : 'udp4').unref();
      for (const message of messages) {
        const sent = Promise.withResolvers<void>();
        socket.send(message.subarray(0, maxDatagramBytes), port, host, (error) =>
          error ? sent.reject(error) : sent.resolve(),
        );
        await sent.promise;
      }
    },
    close: () => socket?.close(),
  };
}

/** An address is not a name that a server could be asked for. */
const serverName = (host: string) => (isIP(host) === 0 ? { servername: host } : {});

function stream({ transport, host, port }: SyslogAddress): Link {
  let socket: Socket | null = null;
  const open = async (): Promise<Socket> => {
    const signal = AbortSignal.timeout(withinMs);
    const opening = transport === 'tls' ? connectTls({ host, port, ...serverName(host) }) : connect({ host, port });
    try {
      await once(opening, transport === 'tls' ? 'secureConnect' : 'connect', { signal });
    } catch (error) {
      opening.destroy();
      throw error;
    }
    // It says nothing that matters; that it closes the connection is seen by the next write.
    opening.resume();
    opening.on('error', () => {});
    opening.on('close', () => {
      if (socket === opening) socket = null;
    });
    return opening;
  };
  return {
    async send(messages) {
      socket ??= await open();
      const written = Promise.withResolvers<void>();
      const own = socket;
      const late = setTimeout(() => own.destroy(new Error('the receiver takes nothing')), withinMs);
      const framed = messages.flatMap((message) => [Buffer.from(`${message.length} `), message]);
      const gone = () => written.reject(new Error('the receiver closed the connection'));
      own.once('close', gone);
      own.write(Buffer.concat(framed), (error) => (error ? written.reject(error) : written.resolve()));
      try {
        await written.promise;
      } finally {
        clearTimeout(late);
        own.off('close', gone);
      }
    },
    close: () => socket?.destroy(),
  };
}

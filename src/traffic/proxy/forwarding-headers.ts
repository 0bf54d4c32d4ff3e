// Which headers travel. Those of the hop (RFC 9110, 7.6.1) end here in both directions, the ones that Connection names
// too. What a client says about who forwarded its request is not believed: it is replaced by what this proxy saw.
import type { IncomingHttpHeaders } from 'node:http';
import { isIPv6, type Socket } from 'node:net';
import { bucketOfCookies } from '../pick.ts';
import { hostNameOf } from './request-target.ts';

export interface InboundHead {
  /** As it goes to the instance, with Host and Content-Length, without those of the hop. */
  headers: string[];
  host: string;
  hosts: number;
  hasBody: boolean;
  chunked: boolean;
  /** From the cookie; -1 without one. */
  bucket: number;
  /** Of Transfer-Encoding, where it is one that we do not decode. */
  strangeEncoding: boolean;
}

/** One pass over the header lines as they came. */
export function readHead(raw: readonly string[]): InboundHead {
  const headers: string[] = [];
  const head: InboundHead = {
    headers,
    host: '',
    hosts: 0,
    hasBody: false,
    chunked: false,
    bucket: -1,
    strangeEncoding: false,
  };
  let connection = '';
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!;
    const value = raw[i + 1]!;
    switch (name.toLowerCase()) {
      case 'host':
        head.hosts++;
        head.host = value;
        break;
      case 'content-length':
        if (value !== '0') head.hasBody = true;
        break;
      case 'transfer-encoding':
        head.hasBody = true;
        head.chunked = true;
        if (value.toLowerCase() !== 'chunked') head.strangeEncoding = true;
        continue;
      case 'cookie':
        if (head.bucket === -1) head.bucket = bucketOfCookies(value);
        break;
      case 'connection':
        connection = connection === '' ? value : `${connection},${value}`;
        continue;
      case 'keep-alive':
      case 'proxy-connection':
      case 'proxy-authorization':
      case 'proxy':
      case 'te':
      case 'trailer':
      case 'upgrade':
      case 'http2-settings':
      case 'expect':
      case 'forwarded':
      case 'x-real-ip':
        continue;
      default:
        if (isForwarded(name)) continue;
    }
    headers.push(name, value);
  }
  if (namesHeaders(connection)) removeNamed(headers, connection);
  return head;
}

/** X-Forwarded-For, -Host, -Proto and all others of that family. */
const isForwarded = (name: string): boolean =>
  name.length > 12 && name.charCodeAt(11) === 45 /* - */ && name.slice(0, 12).toLowerCase() === 'x-forwarded-';

const plainConnection = /^(?:keep-alive|close|upgrade)?$/i;
const namesHeaders = (connection: string): boolean => connection !== '' && !plainConnection.test(connection);

/** What says where a message ends, or whom it is for, does not go away because Connection names it. */
const kept = new Set(['host', 'content-length']);

function removeNamed(headers: string[], connection: string): void {
  const named = new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
  let to = 0;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!.toLowerCase();
    if (named.has(name) && !kept.has(name)) continue;
    headers[to++] = headers[i]!;
    headers[to++] = headers[i + 1]!;
  }
  headers.length = to;
}

/** What is the same for all requests of a connection. */
export interface Peer {
  address: string;
  forwardedFor: string;
  proto: string;
  port: string;
  /** The name it asked for in its TLS handshake, lower case; null: it came without TLS. */
  serverName: string | null;
}

const peer = Symbol('peer');

export function peerOf(
  socket: Socket & { [peer]?: Peer; encrypted?: boolean; servername?: string | false | null },
): Peer {
  const known = socket[peer];
  if (known) return known;
  const address = (socket.remoteAddress ?? 'unknown').replace(/^::ffff:(?=\d+\.)/, '');
  const made = peerFor({
    address,
    proto: socket.encrypted ? 'https' : 'http',
    port: String(socket.localPort),
    serverName: socket.encrypted ? hostNameOf(socket.servername || '') : null,
  });
  socket[peer] = made;
  return made;
}

export function peerFor(known: Omit<Peer, 'forwardedFor'>): Peer {
  const node = isIPv6(known.address) ? `"[${known.address}]"` : known.address;
  return { ...known, forwardedFor: `for=${node};proto=${known.proto};host="` };
}

/** Adds who asked, over what and for which host. The host is one of the routing table's, with a port at most. */
export function addForwarding(headers: string[], { address, forwardedFor, proto, port }: Peer, host: string): void {
  headers.push('X-Forwarded-For', address, 'X-Forwarded-Proto', proto, 'X-Forwarded-Host', host);
  headers.push('X-Forwarded-Port', port, 'Forwarded', `${forwardedFor}${host}"`);
}

/**
 * The head of an answer as it goes to the client. A Trailer header, which promises some, stays only where there can be
 * any.
 */
export function answerHeaders(from: IncomingHttpHeaders, bodyless: boolean, mayHaveTrailers: boolean): string[] {
  const headers: string[] = [];
  let connection = '';
  let length = false;
  for (const name in from) {
    const value = from[name]!;
    switch (name) {
      case 'connection':
        connection = String(value);
        continue;
      case 'content-length':
        if (bodyless) continue;
        length = true;
        break;
      case 'keep-alive':
      case 'proxy-connection':
      case 'proxy-authenticate':
      case 'transfer-encoding':
      case 'te':
      case 'upgrade':
        continue;
      case 'trailer':
        if (!mayHaveTrailers || length || from['content-length'] !== undefined) continue;
    }
    if (typeof value === 'string') headers.push(name, value);
    else for (const one of value) headers.push(name, one);
  }
  if (namesHeaders(connection)) removeNamed(headers, connection);
  return headers;
}

export const pairsOf = (lines: readonly string[]): [string, string][] =>
  Array.from({ length: lines.length / 2 }, (_, i) => [lines[i * 2]!, lines[i * 2 + 1]!]);

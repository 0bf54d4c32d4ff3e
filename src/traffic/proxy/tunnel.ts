// After 101 Switching Protocols a connection carries bytes both ways, in whatever protocol.
import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import { responseHeaders } from './response-headers.ts';

/** How long one end may take to close after the other has. */
const lingerMs = 5000;
const quiet = () => {};

type TimedDuplex = Duplex & { setTimeout?(ms: number, onTimeout?: () => void): void };

/** Passes the instance's 101 on to the visitor. */
export function writeSwitching(client: Duplex, headers: IncomingHttpHeaders, cookie: string | null): void {
  const lines = responseHeaders(headers, true, false);
  if (cookie !== null) lines.push('set-cookie', cookie);
  let head = `HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: ${headers.upgrade ?? ''}\r\n`;
  for (let i = 0; i < lines.length; i += 2) head += `${lines[i]}: ${lines[i + 1]}\r\n`;
  client.write(`${head}\r\n`, 'latin1');
}

/** Joins two sockets until both are closed. An end is passed on after the data before it; so is a reset. */
export function join(client: TimedDuplex, instance: TimedDuplex, idleMs: number, onClosed: () => void): void {
  let open = 2;
  const carry = (one: TimedDuplex, other: TimedDuplex) => {
    one.on('error', quiet);
    one.once('close', (broken?: boolean) => {
      if (broken) other.destroy();
      else other.end();
      other.setTimeout?.(lingerMs, () => other.destroy());
      if (--open === 0) onClosed();
    });
    // Each socket carries both directions, so it is idle only when both are.
    one.setTimeout?.(idleMs, () => one.destroy());
    one.pipe(other);
  };
  carry(client, instance);
  carry(instance, client);
}

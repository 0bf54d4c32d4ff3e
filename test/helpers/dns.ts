// A DNS server on loopback that answers as it is told, and a lookup that asks it.
import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { Lookup } from '../../src/webhooks/sending/connect.ts';

/** The answer to a question for an A record, RFC 1035: the question again, and the addresses; none for other records. */
function answerTo(query: Buffer, addresses: (name: string) => string[]): Buffer {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const question = query.subarray(12, at + 5);
  const found = query.readUInt16BE(at + 1) === 1 ? addresses(labels.join('.')) : [];
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2);
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(found.length, 6);
  const records = found.map((address) =>
    Buffer.from([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]),
  );
  return Buffer.concat([head, question, ...records]);
}

export interface Dns {
  lookup: Lookup;
  questions: string[];
  close(): void;
}

export async function startDns(addresses: (name: string, count: number) => string[]): Promise<Dns> {
  const questions: string[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const answer = answerTo(query, (name) => {
      questions.push(name);
      return addresses(name, questions.filter((asked) => asked === name).length);
    });
    socket.send(answer, from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const resolver = new Resolver({ timeout: 2000, tries: 1 });
  resolver.setServers([`127.0.0.1:${(socket.address() as AddressInfo).port}`]);
  return {
    questions,
    lookup: async (name) => (await resolver.resolve4(name)).map((address) => ({ address, family: 4 })),
    close: () => void socket.close(),
  };
}

// A DNS server on loopback that answers as it is told, and a lookup that asks it.
import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { ResolveTxt } from '../../src/domains/dns-checks.ts';
import type { Lookup } from '../../src/webhooks/receiver-addresses.ts';

const types = { A: 1, TXT: 16 } as const;

/** The answer to a question for A or TXT records, RFC 1035: the question again, and what was found. */
function answerTo(query: Buffer, find: (name: string, type: keyof typeof types) => string[]): Buffer {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const question = query.subarray(12, at + 5);
  const type = (Object.keys(types) as (keyof typeof types)[]).find(
    (each) => types[each] === query.readUInt16BE(at + 1),
  );
  const found = type ? find(labels.join('.'), type) : [];
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2);
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(found.length, 6);
  const records = found.map((text) => {
    const data =
      type === 'A'
        ? Buffer.from(text.split('.').map(Number))
        : Buffer.from(`${String.fromCharCode(text.length)}${text}`, 'latin1');
    return Buffer.from([0xc0, 0x0c, 0, types[type!], 0, 1, 0, 0, 0, 0, 0, data.length, ...data]);
  });
  return Buffer.concat([head, question, ...records]);
}

export interface Dns {
  /** Its address, for a resolver. */
  server: string;
  lookup: Lookup;
  resolveTxt: ResolveTxt;
  questions: string[];
  close(): void;
}

export async function startDns(
  addresses: (name: string, count: number) => string[],
  texts: (name: string) => string[] = () => [],
): Promise<Dns> {
  const questions: string[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const answer = answerTo(query, (name, type) => {
      questions.push(name);
      if (type === 'TXT') return texts(name);
      return addresses(name, questions.filter((asked) => asked === name).length);
    });
    socket.send(answer, from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const resolver = new Resolver({ timeout: 2000, tries: 1 });
  const server = `127.0.0.1:${(socket.address() as AddressInfo).port}`;
  resolver.setServers([server]);
  return {
    server,
    questions,
    lookup: async (name) => (await resolver.resolve4(name)).map((address) => ({ address, family: 4 })),
    resolveTxt: (name) => resolver.resolveTxt(name),
    close: () => void socket.close(),
  };
}

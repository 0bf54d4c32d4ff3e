// The reader of responses beside Node's own strict parser, on valid and on mutated bytes that arrive in pieces: what ours
// passes on, Node's reads in the same way, to the same end. Ours may refuse more.
// SLUICE_TEST_RESPONSES=100000 tries that many.
import assert from 'node:assert/strict';
import { type IncomingMessage, request } from 'node:http';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { ResponseReader } from './response-reader.ts';

const runs = Number(process.env.SLUICE_TEST_RESPONSES ?? 1000);

interface Asked {
  method: string;
  maySwitch: boolean;
}

/** What was made of the bytes so far. Heads and trailers are lines in order, names in lower case. */
interface Seen {
  heads: string[];
  body: string;
  trailers: string;
  switched: string | null;
  isOver: boolean;
}

const nothing = (): Seen => ({ heads: [], body: '', trailers: '', switched: null, isOver: false });
const headOf = (status: number, lines: readonly string[]) => JSON.stringify([status, ...lines]);

interface Read {
  seen: Seen;
  refusal: string | null;
  /** Of how many bytes something was passed on. */
  used: number;
  /** It lasts as long as the connection. */
  untilEnd: boolean;
  keepsAlive: boolean;
}

/** Cuts bytes into pieces of these sizes in turn. */
function* pieces(bytes: Buffer, sizes: readonly number[]): Generator<Buffer> {
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const to = at + sizes[i % sizes.length]!;
    yield bytes.subarray(at, to);
    at = to;
  }
}

function readOurs(bytes: Buffer, { method, maySwitch }: Asked, sizes: readonly number[]): Read {
  const seen = nothing();
  let fed = 0;
  let used = 0;
  const mark = () => {
    used = fed;
  };
  const reader: ResponseReader = new ResponseReader(
    {
      onBegun: () => {},
      onInformation: (status, lines) => {
        mark();
        seen.heads.push(headOf(status, lines));
      },
      onHead: (status, lines) => {
        mark();
        seen.heads.push(headOf(status, lines));
      },
      onData: (data) => {
        mark();
        seen.body += data.toString('latin1');
      },
      onEnd: (trailers) => {
        mark();
        seen.trailers = JSON.stringify(trailers);
        seen.isOver = true;
      },
      onSwitch: (lines, rest) => {
        mark();
        seen.heads.push(headOf(101, lines));
        seen.switched = rest.toString('latin1');
        seen.isOver = true;
      },
    },
    8192,
  );
  reader.expect(method, maySwitch);
  // A piece is overwritten once it was read, as that of a socket may be.
  let refusal: string | null = null;
  try {
    for (const piece of pieces(bytes, sizes)) {
      if (seen.switched !== null) break; // the socket belongs to someone else
      const copy = Buffer.from(piece);
      fed += piece.length;
      reader.read(copy);
      copy.fill(0x58);
    }
  } catch (error) {
    refusal = (error as Error).message;
  }
  let untilEnd = false;
  if (refusal === null && !seen.isOver) untilEnd = reader.end();
  return { seen, refusal, used, untilEnd, keepsAlive: reader.keepsAlive };
}

class Wire extends Duplex {
  override _read(): void {}
  override _write(_chunk: Buffer, _encoding: string, done: () => void): void {
    done();
  }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const lower = (lines: readonly string[]) => lines.map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text));

interface Node extends Seen {
  error: string | null;
}

function nodesReader({ method }: Asked) {
  const wire = new Wire({ allowHalfOpen: true });
  const seen: Node = { ...nothing(), error: null };
  const fail = (error: Error) => {
    seen.error ??= error.message;
  };
  wire.on('error', fail);
  const asked = request({
    createConnection: () => wire as never,
    method,
    headers: { host: 'a' },
    maxHeaderSize: 65_536,
  });
  asked.on('error', fail);
  const take = ({ statusCode, rawHeaders }: Pick<IncomingMessage, 'statusCode' | 'rawHeaders'>) =>
    seen.heads.push(headOf(statusCode!, lower(rawHeaders)));
  asked.on('information', take as never);
  asked.on('response', (response) => {
    take(response);
    response.on('error', fail);
    response.on('data', (chunk: Buffer) => {
      seen.body += chunk.toString('latin1');
    });
    response.on('end', () => {
      seen.trailers = JSON.stringify(lower(response.rawTrailers));
      seen.isOver = true;
    });
  });
  asked.on('upgrade', (response, _socket, head) => {
    take(response);
    seen.switched = head.toString('latin1');
    seen.isOver = true;
  });
  asked.end();
  return { wire, seen };
}

/** Throws where Node's parser reads otherwise what ours has passed on. */
async function compare(bytes: Buffer, asked: Asked, sizes: readonly number[]): Promise<Read> {
  const split = readOurs(bytes, asked, sizes);
  const ours = readOurs(bytes, asked, [1]);
  // How it arrives makes no difference, but for what follows a switch in the same piece.
  const { switched, ...rest } = split.seen;
  const { switched: switchedToo, ...restToo } = ours.seen;
  assert.deepEqual([rest, split.refusal], [restToo, ours.refusal], 'one byte at a time');
  assert.equal(switched === null, switchedToo === null);
  if (ours.seen.heads.length === 0) return ours;
  const { wire, seen } = nodesReader(asked);
  await turn();
  const passed = bytes.subarray(0, ours.used);
  // All but the last byte: then it cannot be over.
  for (const piece of pieces(passed.subarray(0, -1), sizes)) wire.push(Buffer.from(piece));
  await turn();
  const { isOver } = ours.seen;
  assert.equal(seen.error, null, `Node's parser: ${seen.error}`);
  if (isOver) assert.equal(seen.isOver, false, "Node's was over earlier");
  wire.push(Buffer.from(passed.subarray(-1)));
  await turn();
  if (ours.untilEnd) {
    assert.equal(seen.isOver, false, "Node's was over before the connection ended");
    wire.push(null);
    await turn();
  }
  const { error, ...theirs } = seen;
  assert.equal(error, null, `Node's parser: ${error}`);
  assert.deepEqual(
    { ...theirs, switched: theirs.switched === null ? null : '' },
    { ...ours.seen, switched: switchedToo },
  );
  wire.destroy();
  return ours;
}

const { constantFrom, integer, array, tuple, oneof, record, option, boolean } = fc;
const odds = <T>(...all: [number, fc.Arbitrary<T>][]) =>
  oneof(...all.map(([weight, arbitrary]) => ({ weight, arbitrary })));
const string = (unit: string[], maxLength: number) =>
  array(constantFrom(...unit), { maxLength }).map((all) => all.join(''));

const odd = ['\0', '\t', '\n', '\r', '\r\n', ' ', '"', ',', '\\', ';', '=', ':', '\x7f', '\x80', '\xff', '0', 'a', 'F'];
const plain = constantFrom('x', 'a', '1', 'a b', '', ' ', 'a\tb', 'caf\xe9', '"q"', '{}');
const names = ['X', 'x-a', 'Date', 'Set-Cookie', 'Keep-Alive', 'Trailer', 'Upgrade', 'Connection', '__proto__', 'X_Y'];
const status = odds(
  [8, constantFrom(200, 200, 200, 201, 206, 302, 404, 500)],
  [2, constantFrom(204, 205, 304, 101, 100, 103, 102, 199, 600, 999)],
);
const version = odds(
  [24, constantFrom('1.1')],
  [4, constantFrom('1.0')],
  [1, constantFrom('0.9', '2.0', '1.2', '1.', '01.1')],
);
const reason = odds([8, constantFrom(' OK', '', ' ')], [1, string(odd, 3).map((text) => ` ${text}`)]);
const around = odds([9, constantFrom(' ', '')], [1, constantFrom('  ', '\t', ' \t')]);
const value = odds([20, plain], [1, string(odd, 4)]);
const connection = constantFrom(
  'close',
  'keep-alive',
  'Keep-Alive, x',
  'x, close',
  'upgrade',
  'Upgrade, close',
  ',',
  '',
);
const line = odds(
  [24, tuple(constantFrom(...names), value)],
  [12, connection.map((text): [string, string] => ['Connection', text])],
  [1, tuple(string(['a', '-', '!', ' ', ':', '\0', '\xe9'], 2), value)],
).chain(([name, text]) => tuple(around, around).map(([before, after]) => `${name}:${before}${text}${after}\r\n`));
const lines = array(line, { maxLength: 3 }).map((all) => all.join(''));
const startOf = (numbers: fc.Arbitrary<number>) =>
  tuple(version, numbers, reason).map(([v, s, r]) => `HTTP/${v} ${s}${r}\r\n`);
const lengthOf = (size: number) =>
  odds(
    [30, constantFrom(`${size}`)],
    [
      1,
      constantFrom(`0${size}`, ` ${size}`, `+${size}`, `-${size}`, `${size}, ${size}`, `${size} ${size}`, `0x${size}`),
    ],
    [
      1,
      constantFrom(
        `${size}`.padStart(15, '0'),
        `${size}`.padStart(25, '0'),
        `${size}.0`,
        `${size}a`,
        '',
        `${size + 1}`,
      ),
    ],
  );
const encoding = odds(
  [12, constantFrom('chunked')],
  [2, constantFrom('Chunked', 'gzip, chunked', 'gzip,chunked', 'x,\tchunked', 'gzip', 'identity', '')],
  [1, constantFrom('chunked, chunked', 'chunked, gzip', 'chunked,', ',chunked', 'chunked;a', 'xchunked', '"chunked"')],
);
const extension = odds(
  [20, constantFrom('')],
  [
    2,
    constantFrom(';a', ';a=b', ';a=b;c', ';a="b c"', ';a="b\\"c"', ';', ';;', '; a', ';a =b', ' ', ';a=', ';=b', ' ;a'),
  ],
  [1, string(odd, 3).map((text) => `;${text}`)],
);
const sizeOf = (size: number) =>
  odds(
    [24, constantFrom(size.toString(16))],
    [
      1,
      constantFrom(
        `0${size.toString(16)}`,
        size.toString(16).toUpperCase(),
        `000000000000${size}`,
        `0x${size}`,
        '',
        `+${size}`,
      ),
    ],
  );
const data = string(['a', 'b', '\r\n', '0', '\0', '\xff', 'HTTP/1.1 200 OK\r\n\r\n'], 12);
const chunk = data.chain((text) => tuple(sizeOf(text.length), extension).map(([s, e]) => `${s}${e}\r\n${text}\r\n`));
const trailers = odds([4, constantFrom('')], [1, lines]);
const chunks = tuple(array(chunk, { maxLength: 3 }), extension, trailers).map(
  ([all, e, t]) => `${all.filter((one) => !one.startsWith('0\r')).join('')}0${e}\r\n${t}\r\n`,
);

/** The lines that say where a body ends, and a body. */
const framed = odds<[string, string]>(
  [4, data.chain((body) => lengthOf(body.length).map((n): [string, string] => [`Content-Length: ${n}\r\n`, body]))],
  [5, tuple(encoding, chunks).map(([e, body]): [string, string] => [`Transfer-Encoding: ${e}\r\n`, body])],
  [1, data.map((body): [string, string] => ['', body])],
  [
    1,
    tuple(encoding, encoding, option(lengthOf(3)), chunks).map(([a, b, n, body]): [string, string] => [
      `${n === null ? '' : `content-length:${n}\r\n`}transfer-encoding:${a}\r\nTRANSFER-ENCODING: ${b}\r\n`,
      body,
    ]),
  ],
  [
    1,
    data.map((body): [string, string] => [
      `Content-Length: ${body.length}\r\nContent-Length: ${body.length}\r\n`,
      body,
    ]),
  ],
);
const informed = array(tuple(startOf(constantFrom(103, 102, 199, 110)), lines), { maxLength: 2 }).map((all) =>
  all.map(([start, more]) => `${start}${more}\r\n`).join(''),
);
const switching = tuple(lines, boolean()).map(
  ([more, named]) => `HTTP/1.1 101 x\r\n${named ? 'Connection: Upgrade\r\n' : ''}Upgrade: y\r\n${more}\r\n`,
);
const response = tuple(
  startOf(status),
  lines,
  framed,
  lines,
  odds([3, constantFrom('')], [1, constantFrom('\r\n', 'x', 'HTTP/1.1 200 OK\r\n\r\n')]),
).map(([start, before, [frame, body], after, more]) => `${start}${before}${frame}${after}\r\n${body}${more}`);
const valid = tuple(
  odds([6, constantFrom('')], [1, constantFrom('\r\n', '\n', '\r')]),
  odds([3, constantFrom('')], [1, informed]),
  odds([12, response], [1, switching]),
).map((all) => all.join(''));

interface Mutation {
  kind: 'replace' | 'insert' | 'delete' | 'repeat' | 'cut';
  at: number;
  text: string;
  length: number;
}

const mutation: fc.Arbitrary<Mutation> = record({
  kind: constantFrom('replace', 'insert', 'delete', 'repeat', 'cut'),
  at: integer({ min: 0, max: 0xffff }),
  text: odds([5, constantFrom(...odd)], [1, integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code))]),
  length: integer({ min: 1, max: 12 }),
});

function mutate(text: string, { kind, at: anywhere, text: other, length }: Mutation): string {
  const at = anywhere % (text.length + 1);
  const [before, after] = [text.slice(0, at), text.slice(at)];
  switch (kind) {
    case 'replace':
      return before + other + after.slice(1);
    case 'insert':
      return before + other + after;
    case 'delete':
      return before + after.slice(length);
    case 'repeat':
      return before + after.slice(0, length) + after;
    case 'cut':
      return before;
  }
}

const bytes = tuple(
  valid,
  odds([6, constantFrom<Mutation[]>([])], [5, array(mutation, { minLength: 1, maxLength: 3 })]),
).map(([text, mutations]) => mutations.reduce(mutate, text));
const sizes = array(integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 });
const asked = record({ method: constantFrom('GET', 'GET', 'POST', 'HEAD'), maySwitch: boolean() });

test('what it passes on, Node’s parser reads in the same way', { timeout: 3_600_000 }, async (t) => {
  const counts = { complete: 0, refused: 0, partial: 0, switched: 0 };
  const property = fc.asyncProperty(bytes, asked, sizes, async (text, request, cut) => {
    const read = await compare(Buffer.from(text, 'latin1'), request, cut);
    const { seen, refusal } = read;
    counts[seen.switched !== null ? 'switched' : seen.isOver ? 'complete' : refusal !== null ? 'refused' : 'partial']++;
  });
  await fc.assert(property, { numRuns: runs });
  t.diagnostic(JSON.stringify(counts));
  assert.ok(counts.complete > runs / 10 && counts.refused > runs / 20);
});

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ResponseReader } from './response-reader.ts';

const headerBytes = 1024;

interface Asked {
  method?: string;
  maySwitch?: boolean;
  /** In how many bytes at a time they arrive. */
  step?: number;
  /** The instance closes its end after them. */
  ends?: boolean;
}

/** What a reader makes of these bytes, as one text; `!` is a refusal. */
function readAs(text: string, { method = 'GET', maySwitch = false, step = text.length, ends = false }: Asked = {}) {
  const seen: string[] = [];
  let body = '';
  const sink = {
    onBegun: () => {},
    onInformation: (status: number) => void seen.push(`${status}`),
    onHead: (status: number, lines: string[]) => void seen.push(`${status} ${lines.join('|')}`),
    onData: (bytes: Buffer) => {
      body += bytes.toString('latin1');
    },
    onEnd: (trailers: string[]) => void seen.push(`<${body}>${trailers.join('|')}${reader.keepsAlive ? ' kept' : ''}`),
    onSwitch: (lines: string[], rest: Buffer) => void seen.push(`101 ${lines.join('|')} <${rest}>`),
  };
  const reader = new ResponseReader(sink, headerBytes);
  reader.expect(method, maySwitch);
  try {
    for (let at = 0; at < text.length; at += step) reader.read(Buffer.from(text.slice(at, at + step), 'latin1'));
    if (ends) reader.end();
  } catch (error) {
    seen.push(`! ${(error as Error).message}`);
  }
  return seen.join(' ');
}

const ok = 'HTTP/1.1 200 OK\r\n';

describe('a response', () => {
  const read: [name: string, text: string, expected: string, asked?: Asked][] = [
    ['with a length', `${ok}Content-Length: 2\r\n\r\nhi`, '200 content-length|2 <hi> kept'],
    ['with a length of 0', `${ok}Content-Length:0\r\n\r\n`, '200 content-length|0 <> kept'],
    ['without a reason', 'HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n', '200 content-length|0 <> kept'],
    [
      'in chunks',
      `${ok}Transfer-Encoding: chunked\r\n\r\n1;a=b;c="d \\" e"\r\nh\r\nA\r\n0123456789\r\n0\r\n\r\n`,
      '200 transfer-encoding|chunked <h0123456789> kept',
    ],
    [
      'with trailers',
      `${ok}Transfer-Encoding: gzip, Chunked\r\n\r\n0\r\nX-A: 1\r\nX-B:2 \r\n\r\n`,
      '200 transfer-encoding|gzip, Chunked <>x-a|1|x-b|2 kept',
    ],
    ['until the connection ends', `${ok}\r\nall`, '200  <all>', { ends: true }],
    ['that lacks its end', `${ok}Content-Length: 3\r\n\r\nhi`, '200 content-length|3', { ends: true }],
    ['to HEAD', `${ok}Content-Length: 5\r\n\r\n`, '200 content-length|5 <> kept', { method: 'HEAD' }],
    ['204', 'HTTP/1.1 204 No Content\r\n\r\n', '204  <> kept'],
    [
      '304 with the length of what it stands for',
      'HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n',
      '304 content-length|9 <>',
    ],
    [
      'after others',
      `HTTP/1.1 103 Early\r\nLink: x\r\n\r\n${ok}Content-Length: 0\r\n\r\n`,
      '103 200 content-length|0 <> kept',
    ],
    [
      'that closes',
      `${ok}Connection: x, Close\r\nContent-Length: 0\r\n\r\n`,
      '200 connection|x, Close|content-length|0 <>',
    ],
    ['of HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n', '200 content-length|0 <>'],
    [
      'of HTTP/1.0 that is kept',
      'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n',
      '200 connection|keep-alive|content-length|0 <> kept',
    ],
    [
      'of HTTP/1.0 that is kept, in chunks',
      'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      '200 connection|keep-alive|transfer-encoding|chunked <>',
    ],
    ['after line ends', `\r\n\n${ok}Content-Length: 0\r\n\r\n`, '200 content-length|0 <> kept'],
    [
      'with bytes beyond ASCII',
      `${ok}X: caf\xe9 \t\r\nContent-Length: 0\r\n\r\n`,
      '200 x|caf\xe9|content-length|0 <> kept',
    ],
  ];
  for (const [name, text, expected, asked] of read) {
    for (const step of [text.length, 1, 7]) {
      test(`${name}, ${step} bytes at a time`, () => assert.equal(readAs(text, { ...asked, step }), expected));
    }
  }
});

test('a switch to another protocol, with the first of that', () => {
  assert.equal(
    readAs('HTTP/1.1 101 x\r\nConnection: x, Upgrade\r\nUpgrade: y\r\n\r\nrest', { maySwitch: true }),
    '101 connection|x, Upgrade|upgrade|y <rest>',
  );
});

describe('what is no response, or more than one', () => {
  const chunked = `${ok}Transfer-Encoding: chunked\r\n\r\n`;
  const refused: [name: string, text: string, asked?: Asked][] = [
    ['another protocol', 'SSH-2.0-hello\r\n\r\n'],
    ['a folded line', `${ok}X: a\r\n b\r\n\r\n`],
    ['a space before the colon', `${ok}Content-Length : 1\r\n\r\n`],
    ['a line without a name', `${ok}: 1\r\n\r\n`],
    ['a bare line feed in a head', `${ok}X: a\nContent-Length: 1\r\n\r\n`],
    ['a bare carriage return in a head', `${ok}X: a\rb\r\n\r\n`],
    ['a NUL in a head', `${ok}X: a\0b\r\n\r\n`],
    ['two lengths', `${ok}Content-Length: 1\r\nContent-Length: 1\r\n\r\n`],
    ['a list of lengths', `${ok}Content-Length: 1, 1\r\n\r\n`],
    ['a length with a sign', `${ok}Content-Length: +1\r\n\r\n`],
    ['a length and chunks', `${ok}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`],
    ['an empty encoding', `${ok}Content-Length: 1\r\nTransfer-Encoding:\r\n\r\na`],
    ['a chunk size with an extension without a name', `${chunked}1;\r\na\r\n0\r\n\r\n`],
    ['a chunk size with a space in an extension', `${chunked}1;a b\r\na\r\n0\r\n\r\n`],
    ['a chunk size with an open quote', `${chunked}1;a="b\r\na\r\n0\r\n\r\n`],
    ['a chunk size that is no number', `${chunked}0x1\r\na\r\n0\r\n\r\n`],
    ['a chunk size with a space', `${chunked}1 \r\na\r\n0\r\n\r\n`],
    ['an empty chunk size', `${chunked}\r\n\r\n`],
    ['a chunk size that is too large', `${chunked}fffffffffffff\r\n`],
    ['a chunk longer than its size', `${chunked}1\r\nab\r\n0\r\n\r\n`],
    ['a bare line feed after a chunk', `${chunked}1\r\na\n0\r\n\r\n`],
    ['malformed trailers', `${chunked}0\r\nx y\r\n\r\n`],
    ['a second response', `${ok}Content-Length: 0\r\n\r\n${ok}`],
    ['a body for HEAD', `${ok}Content-Length: 2\r\n\r\nhi`, { method: 'HEAD' }],
    ['100 without a wait for it', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['a switch that nobody asked for', 'HTTP/1.1 101 x\r\nUpgrade: y\r\n\r\n'],
    ['a switch without its connection', 'HTTP/1.1 101 x\r\nUpgrade: y\r\n\r\n', { maySwitch: true }],
    ['a first response that closes', `HTTP/1.1 103 x\r\nConnection: close\r\n\r\n`],
    ['a first response of HTTP/1.0', `HTTP/1.0 103 x\r\n\r\n`],
    ['a first response with a body', `HTTP/1.1 103 x\r\nContent-Length: 1\r\n\r\na`],
    ['a first response in chunks', `HTTP/1.1 103 x\r\nTransfer-Encoding: chunked\r\n\r\n`],
    ['a first response with two lengths', `HTTP/1.1 103 x\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n`],
    ['a head that is too large', `${ok}X: ${'x'.repeat(headerBytes)}\r\n\r\n`],
    ['a head that does not end', `${ok}X: ${'x'.repeat(headerBytes)}`],
    ['a chunk size that does not end', `${chunked}1;${'x'.repeat(headerBytes)}`],
  ];
  for (const [name, text, asked] of refused) {
    for (const step of [text.length, 1]) {
      test(`${name}, ${step} bytes at a time`, () => assert.match(readAs(text, { ...asked, step }), /! /));
    }
  }

  test('what follows a response is refused, the response is not', () => {
    assert.match(readAs(`${ok}Content-Length: 0\r\n\r\n${ok}`), /^200 content-length\|0 <> kept !/);
  });
});

test('a head that arrives byte by byte costs as much for each byte, however long it is', () => {
  const nothing = () => {};
  const sink = { onBegun: nothing, onInformation: nothing, onHead: nothing, onData: nothing, onEnd: nothing };
  const costOf = (lines: number) => {
    const reader = new ResponseReader({ ...sink, onSwitch: nothing }, 1024 * 1024);
    reader.expect('GET', false);
    const bytes = Buffer.from(`${ok}${'a: 12345\r\n'.repeat(lines)}`);
    const { user } = process.cpuUsage();
    for (let at = 0; at < bytes.length; at++) reader.read(bytes.subarray(at, at + 1));
    return process.cpuUsage().user - user;
  };
  const least = (lines: number) => Math.min(...[1, 2, 3].map(() => costOf(lines)));
  costOf(1000);
  const ratio = least(8000) / least(500);
  assert.ok(ratio < 64, `16 times as long cost ${ratio} times as much`);
});

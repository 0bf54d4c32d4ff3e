import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Message, MessageParser } from './sse.ts';

function parse(...pieces: string[]): { messages: Message[]; parser: MessageParser } {
  const parser = new MessageParser();
  const messages = pieces.flatMap((piece) => [...parser.feed(piece)]);
  return { messages, parser };
}

test('fields, comments, several lines of data, names without a value', () => {
  const { messages, parser } = parse(
    ': hello\nretry: 1500\n\nid: e1\nevent: alert.fired\ndata: {"a":\ndata: 1}\n\ndata\n\ndata:  two spaces\nunknown: x\n\n',
  );
  assert.deepEqual(messages, [
    { event: 'alert.fired', data: '{"a":\n1}' },
    { event: 'message', data: '' },
    { event: 'message', data: ' two spaces' },
  ]);
  assert.equal(parser.lastEventId, 'e1');
  assert.equal(parser.retryMs, 1500);
});

test('an id alone counts, one with NUL does not, an empty one clears it; a retry that is no number is nothing', () => {
  assert.equal(parse('id: e7\n\n').parser.lastEventId, 'e7');
  assert.equal(parse('id: e7\n\nid: a\0b\ndata: x\n\n').parser.lastEventId, 'e7');
  assert.equal(parse('id: e7\n\nid\ndata: x\n\n').parser.lastEventId, '');
  assert.equal(parse('retry: 5s\n\n').parser.retryMs, null);
});

test('an id counts only with the end of its message: what was cut off comes again', () => {
  const { messages, parser } = parse('id: e1\ndata: 1\n\nid: e2\ndata: 2\n');
  assert.equal(messages.length, 1);
  assert.equal(parser.lastEventId, 'e1');
  assert.equal([...parser.feed('\n')].length, 1);
  assert.equal(parser.lastEventId, 'e2');
});

test('however lines end and wherever the pieces are cut, the messages are the same', () => {
  const line = fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => text.replaceAll(/[\r\n\0]/g, ''));
  const messages = fc.array(fc.array(line, { minLength: 1, maxLength: 3 }), { maxLength: 5 });
  const end = fc.constantFrom('\n', '\r', '\r\n');
  fc.assert(
    fc.property(messages, end, fc.array(fc.nat({ max: 200 })), fc.boolean(), (sent, eol, cuts, bom) => {
      const text = sent.map((lines) => `${lines.map((each) => `data: ${each}${eol}`).join('')}${eol}`).join('');
      const bytes = new TextEncoder().encode((bom ? '\uFEFF' : '') + text);
      const places = [...new Set(cuts.map((cut) => Math.min(cut, bytes.length)))].sort((a, b) => a - b);
      const decoder = new TextDecoder();
      const pieces = [0, ...places].map((from, index) => bytes.slice(from, places[index] ?? bytes.length));
      const parsed = parse(...pieces.map((piece) => decoder.decode(piece, { stream: true })));
      assert.deepEqual(
        parsed.messages.map(({ data }) => data),
        sent.map((lines) => lines.join('\n')),
      );
    }),
    { numRuns: 500 },
  );
});

test('a message without an end is given up before it fills the memory', () => {
  const parser = new MessageParser();
  const piece = `data: ${'x'.repeat(1024 * 1024)}\n`;
  assert.throws(
    () => {
      for (let n = 0; n < 20; n++) for (const _ of parser.feed(piece));
    },
    { code: 'unexpected_answer' },
  );
});

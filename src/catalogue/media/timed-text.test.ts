import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chapterCues, decodeText, formatVtt, parseChapters, parseCues, segmentVtt } from './timed-text.ts';

const srt = `1\r
00:00:01,500 --> 00:00:02,000\r
<i>Hello</i> & <font color="red">good</font> 1 < 2\r
\r
2
00:00:05,000 --> 00:00:08,250
{\\an8}At the top
and below
`;

test('SubRip becomes WebVTT: italics stay, fonts go, signs are escaped', () => {
  assert.equal(
    formatVtt(parseCues(decodeText(Buffer.from(srt)))),
    'WEBVTT\n\n00:00:01.500 --> 00:00:02.000\n<i>Hello</i> &amp; good 1 &lt; 2\n\n' +
      '00:00:05.000 --> 00:00:08.250 line:0\nAt the top\nand below\n',
  );
});

test('WebVTT keeps its settings and loses its notes and styles', () => {
  const vtt = 'WEBVTT - a title\n\nSTYLE\n::cue {}\n\nNOTE\nno\n\nid\n00:01.000 --> 00:02.000 align:start\nA &amp; B\n';
  assert.equal(formatVtt(parseCues(vtt)), 'WEBVTT\n\n00:00:01.000 --> 00:00:02.000 align:start\nA &amp; B\n');
});

test('bytes that are no UTF-8 are read as Windows wrote them', () => {
  assert.equal(decodeText(Buffer.from([0x63, 0x61, 0x66, 0xe9])), 'café');
  assert.equal(decodeText(Buffer.from('\uFEFFcafé\r\n')), 'café\n');
});

test('a cue is in every segment during which it is shown', () => {
  const segments = segmentVtt(parseCues(decodeText(Buffer.from(srt))), [6, 6]);
  assert.ok(segments.every((text) => text.startsWith('WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n\n')));
  assert.deepEqual(
    segments.map((text) => text.match(/-->/g)?.length ?? 0),
    [2, 1],
  );
});

test('what has no cue or no chapter is told', () => {
  assert.throws(() => parseCues('hello'), /has no cue/);
  assert.throws(() => parseChapters('hello'), /has no chapter/);
});

test('chapters last until the next, and end with the film', () => {
  const cues = chapterCues(parseChapters('0:00 Calm\n1:02:03 - The storm\n9:00:00 Too late\n'), 4000);
  assert.deepEqual(
    cues.map(({ fromS, toS, text }) => [fromS, toS, text]),
    [
      [0, 3723, 'Calm'],
      [3723, 4000, 'The storm'],
    ],
  );
});

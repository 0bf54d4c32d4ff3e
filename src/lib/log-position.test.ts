import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeLine, encodeLines, maxPieceBytes, type TimedLine, timeText } from './log-lines.ts';
import {
  type LogPosition,
  parsePosition,
  positionBehind,
  positionText,
  RepeatFilter,
  Resumption,
} from './log-position.ts';

const line = (ms: number, text: string, stream: TimedLine['stream'] = 'stdout', nanos = 0): TimedLine => ({
  time: timeText(ms, nanos),
  stream,
  text,
});
const start = Date.UTC(2026, 10, 15);
const some = Array.from({ length: 5 }, (_, index) => line(start + index, `line ${index}`));
const position = (index: number): LogPosition => ({ time: some[index]!.time, kind: 'o', count: 1 });

test('a line longer than a piece is several, the later ones marked', () => {
  const pieces = encodeLine(line(start, 'x'.repeat(maxPieceBytes + 1)))
    .toString()
    .trimEnd()
    .split('\n');
  assert.deepEqual(
    pieces.map((piece) => [piece[0], piece.length]),
    [
      ['o', 32 + maxPieceBytes],
      ['O', 33],
    ],
  );
});

test('the position is behind the last line, and counts lines of the same time', () => {
  assert.equal(positionBehind(null, Buffer.alloc(0)), null);
  assert.deepEqual(positionBehind(null, encodeLines(some)), position(4));
  const twice = encodeLines([some[0]!, some[1]!, some[1]!]);
  assert.deepEqual(positionBehind(null, twice), { ...position(1), count: 2 });
  assert.deepEqual(positionBehind(position(1), encodeLines([some[1]!])), { ...position(1), count: 2 });
  assert.deepEqual(positionBehind(position(1), encodeLine(line(start, 'said', 'system'))), position(1));
  assert.deepEqual(parsePosition(positionText(position(3))), position(3));
});

test('a log that is read again goes on behind the position, however it is cut into chunks', () => {
  for (const chunks of [[encodeLines(some)], some.map(encodeLine)]) {
    const resumption = new Resumption(position(2));
    const fresh = Buffer.concat(chunks.map((chunk) => resumption.take(chunk) ?? Buffer.alloc(0)));
    assert.equal(fresh.toString(), encodeLines(some.slice(3)).toString());
    assert.equal(resumption.giveUp(), null);
  }
});

test('a line that was stamped earlier and stored later is not lost', () => {
  const late = line(start + 1, 'late', 'stderr');
  const resumption = new Resumption(position(2));
  const fresh = resumption.take(encodeLines([some[2]!, late, some[3]!]))!;
  assert.equal(fresh.toString(), encodeLines([late, some[3]!]).toString());
});

test('where the position is gone, one line says so and all that is there follows', () => {
  const resumption = new Resumption(position(0));
  const later = [line(start + 5000, 'later'), line(start + 5001, 'still later')];
  const [said, ...rest] = resumption.take(encodeLines(later))!.toString().split('\n');
  assert.match(said!, /^s.{30} lines were lost here/);
  assert.equal(rest.join('\n'), encodeLines(later).toString());
  assert.equal(resumption.state, 'lost');
  assert.equal(resumption.take(encodeLine(some[0]!))!.toString(), encodeLine(some[0]!).toString());
});

test('where the log ends before the position is found, what was held back is new', () => {
  const resumption = new Resumption(position(0));
  assert.equal(resumption.take(encodeLine(some[1]!)), null);
  assert.match(resumption.giveUp()!.toString(), /lines were lost here.*\no.{30} line 1\n$/s);
});

const startMs = Date.UTC(2026, 10, 15);
const numberedLine = (n: number, stream: TimedLine['stream'] = 'stdout', ms = startMs + n): TimedLine => ({
  time: timeText(ms),
  stream,
  text: `line ${n}`,
});
const numberedLines = Array.from({ length: 20 }, (_, n) => numberedLine(n, n % 5 === 4 ? 'stderr' : 'stdout'));

/** What comes of lines in chunks of some size, with what is held back at the end. */
function onceOf(lines: TimedLine[], size: number): string {
  const once = new RepeatFilter(null);
  const out: Buffer[] = [];
  for (let at = 0; at < lines.length; at += size) {
    const chunk = encodeLines(lines.slice(at, at + size));
    out.push(Buffer.from(once.take(chunk) ?? ''));
    chunk.fill(0); // its memory is used again
  }
  out.push(once.giveUp() ?? Buffer.alloc(0));
  return Buffer.concat(out).toString();
}

test('lines that are given again are left out, however they are cut into chunks', () => {
  const repeated = [...numberedLines.slice(0, 13), ...numberedLines.slice(3)];
  for (let size = 1; size <= repeated.length; size++) {
    assert.equal(onceOf(repeated, size), encodeLines(numberedLines).toString(), `in chunks of ${size}`);
  }
});

test('also right behind the position that reading goes on from', () => {
  const once = new RepeatFilter({ time: numberedLines[8]!.time, kind: 'o', count: 1 });
  assert.equal(once.holdsBack, false, 'nothing has come that could be lost');
  assert.equal(once.take(encodeLines(numberedLines.slice(4, 8))), null);
  assert.equal(once.holdsBack, true);
  assert.equal(once.take(encodeLine(numberedLines[8]!)), null);
  assert.equal(once.holdsBack, false);
  assert.equal(
    String(once.take(encodeLines(numberedLines.slice(5))) ?? ''),
    encodeLines(numberedLines.slice(9)).toString(),
  );
});

test('so is the last line alone, but not the pieces of a long one', () => {
  assert.equal(
    onceOf([...numberedLines.slice(0, 4), numberedLines[3]!, ...numberedLines.slice(4)], 1),
    encodeLines(numberedLines).toString(),
  );
  assert.equal(
    onceOf([...numberedLines.slice(0, 4), ...numberedLines.slice(3)], 30),
    encodeLines(numberedLines).toString(),
  );
  const long = { ...numberedLine(1), text: 'x'.repeat(5 * maxPieceBytes) };
  assert.equal(onceOf([long, numberedLine(2)], 1), encodeLines([long, numberedLine(2)]).toString());
});

test('of lines with the same time as many are left out as there were', () => {
  const same = [
    numberedLine(1),
    numberedLine(2, 'stdout', startMs + 5),
    numberedLine(3, 'stdout', startMs + 5),
    numberedLine(4, 'stdout', startMs + 6),
  ];
  const repeated = [...same.slice(0, 3), ...same];
  assert.equal(onceOf(repeated, 1), encodeLines(same).toString());
  assert.equal(onceOf(repeated, 9), encodeLines(same).toString());
});

test('where the clock was set back nothing is lost, and none is said to be', () => {
  const back = [
    numberedLine(0),
    numberedLine(1),
    numberedLine(2, 'stdout', startMs - 5000),
    numberedLine(3, 'stdout', startMs - 4999),
    numberedLine(4),
  ];
  for (const size of [1, 2, 5]) assert.equal(onceOf(back, size), encodeLines(back).toString(), `in chunks of ${size}`);
});

test('streams have times of their own', () => {
  const mixed = [numberedLine(5), numberedLine(3, 'stderr'), numberedLine(6), numberedLine(4, 'stderr')];
  assert.equal(onceOf(mixed, 1), mixed.map((each) => encodeLine(each)).join(''));
});

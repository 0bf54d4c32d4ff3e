import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeLine, encodeLines, maxPieceBytes, type TimedLine, timeText } from './lines.ts';
import { type LogPosition, parsePosition, positionBehind, positionText, Resumption } from './position.ts';

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

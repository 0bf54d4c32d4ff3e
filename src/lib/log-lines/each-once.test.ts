import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EachOnce } from './each-once.ts';
import { encodeLine, encodeLines, maxPieceBytes, type TimedLine, timeText } from './lines.ts';

const start = Date.UTC(2026, 10, 15);
const line = (n: number, stream: TimedLine['stream'] = 'stdout', ms = start + n): TimedLine => ({
  time: timeText(ms),
  stream,
  text: `line ${n}`,
});
const some = Array.from({ length: 20 }, (_, n) => line(n, n % 5 === 4 ? 'stderr' : 'stdout'));

/** What comes of lines in chunks of some size, with what is held back at the end. */
function onceOf(lines: TimedLine[], size: number): string {
  const once = new EachOnce(null);
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
  const repeated = [...some.slice(0, 13), ...some.slice(3)];
  for (let size = 1; size <= repeated.length; size++) {
    assert.equal(onceOf(repeated, size), encodeLines(some).toString(), `in chunks of ${size}`);
  }
});

test('also right behind the position that reading goes on from', () => {
  const once = new EachOnce({ time: some[8]!.time, kind: 'o', count: 1 });
  assert.equal(once.holdsBack, false, 'nothing has come that could be lost');
  assert.equal(once.take(encodeLines(some.slice(4, 8))), null);
  assert.equal(once.holdsBack, true);
  assert.equal(once.take(encodeLine(some[8]!)), null);
  assert.equal(once.holdsBack, false);
  assert.equal(String(once.take(encodeLines(some.slice(5))) ?? ''), encodeLines(some.slice(9)).toString());
});

test('so is the last line alone, but not the pieces of a long one', () => {
  assert.equal(onceOf([...some.slice(0, 4), some[3]!, ...some.slice(4)], 1), encodeLines(some).toString());
  assert.equal(onceOf([...some.slice(0, 4), ...some.slice(3)], 30), encodeLines(some).toString());
  const long = { ...line(1), text: 'x'.repeat(5 * maxPieceBytes) };
  assert.equal(onceOf([long, line(2)], 1), encodeLines([long, line(2)]).toString());
});

test('of lines with the same time as many are left out as there were', () => {
  const same = [line(1), line(2, 'stdout', start + 5), line(3, 'stdout', start + 5), line(4, 'stdout', start + 6)];
  const repeated = [...same.slice(0, 3), ...same];
  assert.equal(onceOf(repeated, 1), encodeLines(same).toString());
  assert.equal(onceOf(repeated, 9), encodeLines(same).toString());
});

test('where the clock was set back nothing is lost, and none is said to be', () => {
  const back = [line(0), line(1), line(2, 'stdout', start - 5000), line(3, 'stdout', start - 4999), line(4)];
  for (const size of [1, 2, 5]) assert.equal(onceOf(back, size), encodeLines(back).toString(), `in chunks of ${size}`);
});

test('streams have times of their own', () => {
  const mixed = [line(5), line(3, 'stderr'), line(6), line(4, 'stderr')];
  assert.equal(onceOf(mixed, 1), mixed.map((each) => encodeLine(each)).join(''));
});

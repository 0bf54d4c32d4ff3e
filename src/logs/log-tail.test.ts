import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeLines, timeLength, timeText } from '../lib/log-lines.ts';
import { raiseTimes } from './log-tail.ts';

const linesAt = (...times: number[]) =>
  encodeLines(times.map((ms, index) => ({ time: timeText(ms, index), stream: 'stdout', text: `line ${index}` })));

test('a time that is earlier than one before becomes that, also of lines that came before', () => {
  const latest = Buffer.alloc(timeLength, ' ');
  const first = linesAt(1000, 3000, 2000, 4000, 1000);
  assert.equal(raiseTimes(first, latest), 5);
  const [a, b, d] = [timeText(1000, 0), timeText(3000, 1), timeText(4000, 3)];
  assert.equal(first.toString(), `o${a} line 0\no${b} line 1\no${b} line 2\no${d} line 3\no${d} line 4\n`);
  assert.equal(latest.toString(), d);
  const second = linesAt(3999, 5000);
  raiseTimes(second, latest);
  assert.equal(second.toString(), `o${d} line 0\no${timeText(5000, 1)} line 1\n`);
  assert.equal(raiseTimes(Buffer.alloc(0), latest), 0);
  assert.equal(latest.toString(), timeText(5000, 1));
});

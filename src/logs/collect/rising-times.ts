import { newline, timeLength } from '../../lib/log-lines.ts';

/**
 * Times of an instance only rise from line to line, so that its lines are in order by time too: earlier ones become
 * `latest`, which is the latest from then on. Gives the number of lines. Nothing is made for a line, not even a string,
 * because there may be a million of them in a second.
 */
export function raiseTimes(lines: Buffer, latest: Buffer): number {
  let [before, at] = [latest, 0];
  let count = 0;
  for (let start = 0; start < lines.length; start = lines.indexOf(newline, start) + 1) {
    if (isEarlier(lines, start + 1, before, at)) before.copy(lines, start + 1, at, at + timeLength);
    [before, at] = [lines, start + 1];
    count++;
  }
  before.copy(latest, 0, at, at + timeLength);
  return count;
}

function isEarlier(time: Buffer, from: number, before: Buffer, at: number): boolean {
  for (let index = 0; index < timeLength; index++) {
    const difference = time[from + index]! - before[at + index]!;
    if (difference !== 0) return difference < 0;
  }
  return false;
}

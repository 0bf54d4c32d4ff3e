import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeLines, timeText } from '../../lib/log-lines.ts';
import { compress } from '../store/segment-encoding.ts';
import type { ScanQuery } from './scan.ts';
import { Scanners } from './scanners.ts';

const query: ScanQuery = {
  ...{ from: timeText(0), to: timeText(1e12), kind: null, search: null },
  ...{ order: 'oldest', limit: 10, beyond: null },
};
const raw = encodeLines([{ time: timeText(1000), stream: 'stdout', text: '{"level":"error","msg":"no"}' }]);

test('one account waits for another by no more than a segment, however many it has asked for', async () => {
  const scanners = new Scanners();
  const ended: string[] = [];
  const compressed = await compress(raw);
  const scan = async (account: string) => {
    const entries = await scanners.scan(account, new Uint8Array(compressed), raw.length, query);
    ended.push(account);
    return entries;
  };
  // Threads take longer to start than these segments to read.
  await Promise.all(Array.from({ length: scanners.size }, (_, n) => scan(`warm-up ${n}`)));
  ended.length = 0;
  const many = Array.from({ length: 100 }, () => scan('a'));
  const [entry] = await scan('b');
  assert.ok(ended.length < 20, `${ended.length} of the other account came first`);
  assert.deepEqual(entry!.fields, { level: 'error', message: 'no', loggedAt: null }, 'read in the thread');
  await Promise.all(many);
  await scanners.close();
});

test('a thread that takes too long is ended, and the next one works', async () => {
  const impatient = new Scanners(1);
  await assert.rejects(impatient.scan('a', await compress(raw), raw.length, query), { code: 'busy' });
  await impatient.close();
  const scanners = new Scanners();
  assert.equal((await scanners.scan('a', await compress(raw), raw.length, query)).length, 1);
  await scanners.close();
});

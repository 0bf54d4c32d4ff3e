// Where segments are kept, and how much of them: every place does the same, the oldest goes first, nothing is stored twice.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { countUsed } from '../../../src/accounts/account-usage.ts';
import type { Limits } from '../../../src/accounts/quota-settings.ts';
import { Quotas } from '../../../src/accounts/quotas.ts';
import { ChangedMeanwhile } from '../../../src/db/guarded.ts';
import { RetentionClock } from '../../../src/db/retention-clock.ts';
import type { LogPlace } from '../../../src/db/tables.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createIds } from '../../../src/lib/ids.ts';
import { encodeLine, timeText } from '../../../src/lib/log-lines.ts';
import { parsePosition } from '../../../src/lib/log-position.ts';
import { Tail } from '../../../src/logs/log-tail.ts';
import { readPage } from '../../../src/logs/read/log-page.ts';
import { Scanners } from '../../../src/logs/read/scanners.ts';
import { capWithin, sweepBytes, trimLogs } from '../../../src/logs/store/log-retention.ts';
import type { SegmentBytes } from '../../../src/logs/store/segment-bytes.ts';
import { decompress, filterOf } from '../../../src/logs/store/segment-encoding.ts';
import { segmentFiles } from '../../../src/logs/store/segment-files.ts';
import { segmentObjects } from '../../../src/logs/store/segment-objects.ts';
import { segmentRows } from '../../../src/logs/store/segment-rows.ts';
import { listSegments, openStream } from '../../../src/logs/store/segments.ts';
import { insertAccount } from '../../../src/tokens/admin-token.ts';
import { startS3 } from '../../helpers/s3.ts';
import { sharedApp } from '../../helpers/shared-app.ts';

const app = sharedApp({ env: { SLUICE_ROLES: 'api' } });
const ids = createIds(systemClock);
const everything = { fromMs: 0, toMs: Date.UTC(9999, 0) };
const hourMs = 3_600_000;

const quotasOf = (all: Limits) =>
  new Quotas({ setting: { all, accounts: new Map() }, projectsPerAccount: 0, ports: 100, requestsPerMinute: 100 });

test('what is too much is taken from the largest, and no more than that', () => {
  assert.equal(capWithin([10, 20, 30], null), Number.POSITIVE_INFINITY);
  assert.equal(capWithin([10, 20, 30], 60), Number.POSITIVE_INFINITY);
  assert.equal(capWithin([10, 20, 30], 50), 20);
  assert.equal(capWithin([10, 200, 300], 110), 50);
  assert.equal(capWithin([10, 20], 0), 0);
});

const s3 = await startS3('logs');
after(() => s3.stop());

const kinds: Record<LogPlace, () => SegmentBytes> = {
  files: () => segmentFiles(join(app.dataDir, 'logs')),
  database: () => segmentRows(app.app.store.db, systemClock),
  s3: () => segmentObjects(s3.storeAt('kept/logs')),
};

for (const [here, open] of Object.entries(kinds) as [keyof typeof kinds, () => SegmentBytes][]) {
  describe(`segments in ${here}`, () => {
    async function newLog() {
      const { db } = app.app.store;
      const bytes = open();
      const places = { here, of: (place: LogPlace) => (place === here ? bytes : null) };
      const key = { projectId: await app.newProject(), environment: 'production' };
      const instance = { id: ids('ins'), key, revision: 1 };
      const parts = { db, clock: systemClock, ids, places, memory: { bytes: 0 }, onStored: () => {} };
      const tail = async () => {
        const stream = (await openStream(db, instance, Date.now()))!;
        return new Tail(parts, instance, stream, stream.position === null ? null : parsePosition(stream.position));
      };
      const read = async () => {
        const rows = (await listSegments(db, key, everything)).sort((a, b) => a.seq - b.seq);
        const raw = await Promise.all(rows.map(async ({ blob }) => decompress((await bytes.read(key, blob))!)));
        return Buffer.concat(raw).toString();
      };
      return { db, bytes, places, key, parts, tail, read };
    }
    let at = Date.now() - hourMs;
    const line = (text: string) => encodeLine({ time: timeText(at++), stream: 'stdout', text });

    test('a segment grows while it is small, and is read back as it was written', async () => {
      const { tail, read, db, key, parts } = await newLog();
      const own = await tail();
      const [one, two] = [line('one'), line('two')];
      await own.add(Buffer.from(one));
      await own.write();
      await own.add(Buffer.from(two));
      await own.write();
      await own.write();
      assert.equal(await read(), `${one}${two}`);
      assert.equal((await listSegments(db, key, everything)).length, 1);
      await own.forget();
      assert.equal(parts.memory.bytes, 0);
      const next = await tail();
      const three = line('three');
      await next.add(Buffer.from(three));
      await next.write();
      assert.equal(await read(), `${one}${two}${three}`, 'a process that goes on leaves what is there');
    });

    test('of two that collect the same log, the second to write is refused', async () => {
      const { tail, read } = await newLog();
      const [first, second] = [await tail(), await tail()];
      const said = line('said once');
      await first.add(Buffer.from(said));
      await second.add(Buffer.from(said));
      await first.write();
      await assert.rejects(second.write(), ChangedMeanwhile);
      assert.equal(await read(), said.toString());
    });

    test('a search takes apart only those that may hold the text', async () => {
      const { tail, db, bytes, places, key } = await newLog();
      const own = await tail();
      for (let n = 0; n < 3; n++) {
        await own.add(
          Buffer.concat(Array.from({ length: 6000 }, (_, k) => line(`order ${n * 6000 + k} of Shop ${n}`))),
        );
        await own.write();
      }
      const segments = await listSegments(db, key, everything);
      assert.equal(segments.length, 3);
      const scanners = new Scanners();
      const taken: number[] = [];
      const counted = {
        size: scanners.size,
        scan: (...args: Parameters<Scanners['scan']>) => {
          taken.push(args[2]);
          return scanners.scan(...args);
        },
      } as Scanners;
      const search = async (text: string) => {
        taken.length = 0;
        const query = {
          accountId: 'acc',
          ...everything,
          kind: null,
          search: text,
          order: 'newest' as const,
          limit: 10,
          after: null,
        };
        const { entries } = await readPage({ db, places, scanners: counted }, key, query);
        return { found: entries.map(({ text }) => text), taken: taken.length };
      };
      assert.deepEqual(await search('no-such-word'), { found: [], taken: 0 });
      assert.deepEqual(await search('order 7000 of SHOP'), { found: [], taken: 1 });
      assert.deepEqual(await search('order 7000 of shop'), { found: ['order 7000 of Shop 1'], taken: 1 });
      assert.equal((await search('of shop')).found.length, 10);
      await scanners.close();
      assert.ok(filterOf((await bytes.read(key, segments[0]!.blob))!)!.length < segments[0]!.raw_bytes / 8);
    });

    test('more than fits goes, the oldest first; so does what is too old; and bytes that nothing refers to', async () => {
      const { tail, db, bytes, places, key } = await newLog();
      const own = await tail();
      for (let n = 0; n < 20; n++) {
        await own.add(Buffer.concat(Array.from({ length: 20 }, () => line(randomBytes(11_250).toString('base64')))));
        await own.write();
      }
      const before = (await listSegments(db, key, everything)).reverse();
      assert.ok(before.length >= 10, `${before.length} segments`);
      const size = before.reduce((sum, row) => sum + row.bytes, 0);
      const limits = { db, places, retention: new RetentionClock(db, systemClock), days: 14, quotas: quotasOf({}) };
      await trimLogs({ ...limits, maxBytes: Math.floor(size / 2) });
      const kept = (await listSegments(db, key, everything)).reverse();
      assert.deepEqual(
        kept.map(({ seq }) => seq),
        before.slice(-kept.length).map(({ seq }) => seq),
      );
      assert.ok(kept.length > 0 && kept.reduce((sum, row) => sum + row.bytes, 0) <= size / 2);
      assert.equal(await bytes.read(key, before[0]!.blob), null, 'its bytes are gone too');
      await bytes.save(key, 'blob_orphan', Buffer.from('x'));
      await sweepBytes({ db, places }, Date.now());
      assert.ok(await bytes.read(key, 'blob_orphan'), 'a segment may be about to refer to it');
      await sweepBytes({ db, places }, Date.now() + 2 * hourMs);
      assert.equal(await bytes.read(key, 'blob_orphan'), null);
      for (const { blob } of kept) assert.ok(await bytes.read(key, blob));
      const later = { now: async () => Date.now() + 15 * 86_400_000 } as unknown as RetentionClock;
      await trimLogs({ ...limits, retention: later, maxBytes: size });
      assert.deepEqual(await listSegments(db, key, everything), []);
    });

    test('an account beyond its quota loses its oldest lines, and what it has is noted', async () => {
      const { tail, db, places, key } = await newLog();
      const own = await tail();
      for (let n = 0; n < 6; n++) {
        await own.add(Buffer.concat(Array.from({ length: 20 }, () => line(randomBytes(11_250).toString('base64')))));
        await own.write();
      }
      const before = await listSegments(db, key, everything);
      const size = before.reduce((sum, row) => sum + row.bytes, 0);
      const limits = { db, places, retention: new RetentionClock(db, systemClock), days: 14, maxBytes: 2 * size };
      const account_id = await insertAccount(db, ids, 'of its own', Date.now());
      await db.updateTable('project').set({ account_id }).where('id', '=', key.projectId).execute();
      const used = () => countUsed(db, account_id, 'log_bytes');
      await trimLogs({ ...limits, quotas: quotasOf({}) });
      assert.equal((await listSegments(db, key, everything)).length, before.length);
      assert.equal(await used(), size);
      await trimLogs({ ...limits, quotas: quotasOf({ log_bytes: Math.floor(size / 2) }) });
      const kept = await listSegments(db, key, everything);
      assert.ok(kept.length > 0 && kept.reduce((sum, row) => sum + row.bytes, 0) <= size / 2);
      assert.deepEqual(kept[0], before[0], 'the newest');
      assert.equal(await used(), Math.floor(size / 2));
    });

    test('with its environment all is gone at once', async () => {
      const { tail, db, bytes, places, key } = await newLog();
      const own = await tail();
      await own.add(line('secret'));
      await own.write();
      const [row] = await listSegments(db, key, everything);
      await app.call('DELETE', `/v1/projects/${key.projectId}`);
      await sweepBytes({ db, places }, Date.now());
      assert.equal(await bytes.read(key, row!.blob), null);
      await own.add(line('too late'));
      await assert.rejects(own.write(), ChangedMeanwhile);
    });
  });
}

// A program that prints without end: what is kept in memory for it does not grow with what it has printed.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Engine } from '../../src/engines/engine.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createIds } from '../../src/lib/ids.ts';
import { encodeLine, timeText } from '../../src/lib/log-lines.ts';
import { Collection } from '../../src/logs/log-collector.ts';
import { segmentFiles } from '../../src/logs/store/segment-files.ts';
import { listSegments } from '../../src/logs/store/segments.ts';
import { sharedApp } from '../helpers/shared-app.ts';

const app = sharedApp({ env: { SLUICE_ROLES: 'api' } });
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const chunks = 40_000;
const mostGrowth = 4 * 1024 * 1024;

function printing(heapAt: number[]): Pick<Engine, 'follow'> {
  return {
    async *follow() {
      const start = Date.now();
      for (let n = 0; n < chunks; n++) {
        yield encodeLine({ time: timeText(start + n), stream: 'stdout', text: `line ${n} of a program that prints` });
        if (n !== chunks / 4 && n !== chunks - 1) continue;
        collectGarbage();
        heapAt.push(process.memoryUsage().heapUsed);
      }
    },
  };
}

test('chunk after chunk nothing stays in memory, and every line is stored', async () => {
  const { db } = app.app.store;
  const key = { projectId: await app.newProject(), environment: 'production' };
  const files = segmentFiles(join(app.dataDir, 'logs'));
  const memory = { bytes: 0 };
  const heapAt: number[] = [];
  const parts = {
    db,
    memory,
    clock: systemClock,
    ids: createIds(systemClock),
    places: { here: 'files' as const, of: () => files },
    log: app.app.log,
    onStored: () => {},
    onLines: () => {},
  };
  const collection = new Collection(parts, { id: 'ins_flood', key, revision: 1 }, printing(heapAt) as Engine);
  await collection.done;
  const [early, late] = heapAt as [number, number];
  assert.ok(late - early < mostGrowth, `the heap grew by ${late - early} bytes`);
  assert.equal(memory.bytes, 0);
  const segments = await listSegments(db, key, { fromMs: 0, toMs: Date.UTC(9999, 0) });
  assert.equal(
    segments.reduce((sum, { lines }) => sum + lines, 0),
    chunks,
  );
});

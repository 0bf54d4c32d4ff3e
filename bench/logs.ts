// npm run bench -- logs [count] [search] [flood]: what instances print, at full size.
//   count    a million lines of a container, over kill -9 of the service: read back, in order, none lost
//   search   through 100 MB, beside zstdcat | grep and grep on the same bytes
//   flood    memory while a program prints 100 MB/s, and while a container prints as much as Docker takes
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Engine } from '../src/engines/engine.ts';
import { encodeLines, timeText } from '../src/lib/log-lines.ts';
import { Collection } from '../src/logs/log-collector.ts';
import { Tail } from '../src/logs/log-tail.ts';
import { segmentFiles } from '../src/logs/store/segment-files.ts';
import { openStream } from '../src/logs/store/segments.ts';
import { isolatedEnv, startApp, type TestApp } from '../test/helpers/app.ts';
import { latestNumber, readCounted } from '../test/helpers/counted.ts';
import { dockerMissing, startDocker, startRegistry } from '../test/helpers/docker.ts';
import { type ImageKind, pushImage } from '../test/helpers/images.ts';
import { startService } from '../test/helpers/service.ts';
import { Shop } from '../test/helpers/shop.ts';
import { until } from '../test/helpers/wait.ts';
import { note, report } from './lib/report.ts';

const megabyte = 1024 * 1024;
const million = 1_000_000;
const warmUpMs = 5000;
const chosen = process.argv.slice(2).filter((word) => ['count', 'search', 'flood'].includes(word));
const runs = (part: string) => chosen.length === 0 || chosen.includes(part);
const cleanUp: (() => unknown)[] = [];

async function onDocker(kind: ImageKind) {
  const [docker, registry] = await Promise.all([startDocker(), startRegistry()]);
  cleanUp.push(
    () => registry.stop(),
    () => docker.stop(),
  );
  return { image: await pushImage(docker, registry, kind), region: `local=docker:${docker.socket}` };
}

async function count(): Promise<void> {
  const { image, region } = await onDocker('counting');
  const isolated = await isolatedEnv();
  cleanUp.push(isolated.clean);
  const env = { ...isolated.env, SLUICE_REGIONS: region };
  let service = startService(env);
  cleanUp.push(() => service.killAll());
  let url = await service.url;
  const shop = Object.assign(await Shop.open(url, { variables: { LINES: String(million) } }), { pollMs: 150 });
  const began = performance.now();
  await shop.deploy(image);
  for (const share of [0.2, 0.5, 0.8]) {
    await until('more lines', async () => (await latestNumber(url, shop.project)) > million * share, 600_000, 500);
    service.killAll();
    await service.exited;
    service = startService(env);
    url = await service.url;
  }
  await until('all lines', async () => (await latestNumber(url, shop.project)) === million, 600_000, 500);
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  const { inOrder, wrong } = await readCounted(url, shop.project);
  const amiss = million - inOrder;
  const of = `printed in ${seconds} s; ${wrong ?? 'none lost'}`;
  report('of a million lines, over three `kill -9`: lost or out of order', String(amiss), '0', amiss === 0, of);
  service.killAll();
}

/** What a service might print. */
function lineAt(n: number): string {
  const word = ((n * 2_654_435_761) >>> 0).toString(36);
  return `{"level":30,"time":${1.79e12 + n},"req":"${word}","path":"/orders/${n % 9973}","status":200,"ms":${n % 250}}`;
}

/** `paced`: as by a program that prints a megabyte a second; else as fast as it can. */
async function fill(app: TestApp, bytes: number, paced: boolean) {
  const { db } = app.app.store;
  const project = (await app.call('POST', '/v1/projects', { body: { name: 'Bench' } })).body.id;
  const key = { projectId: project, environment: 'production' };
  const dir = join(app.dataDir, 'logs');
  const instance = { id: `ins_bench_${paced}`, key, revision: 1 };
  const stream = (await openStream(db, instance, Date.now()))!;
  const tail = new Tail(tailParts(app, dir), instance, stream, null);
  const start = Date.now() - 3_600_000;
  let text = '';
  for (let n = 0, unwritten = 0; text.length < bytes; ) {
    const lines = Array.from({ length: 1000 }, () => {
      const line = { time: timeText(start + n), stream: 'stdout' as const, text: lineAt(n) };
      text += `${line.text}\n`;
      n++;
      return line;
    });
    const chunk = encodeLines(lines);
    await tail.add(chunk);
    unwritten += chunk.length;
    if (!paced || unwritten < megabyte) continue;
    await tail.write();
    unwritten = 0;
  }
  await tail.add(encodeLines([{ time: timeText(start + 1e7), stream: 'stdout', text: 'the end' }]));
  await tail.write();
  const plain = join(app.dataDir, 'plain.log');
  writeFileSync(plain, text);
  return {
    path: `/v1/projects/${project}/environments/production/logs`,
    folder: join(dir, project, 'production'),
    plain,
  };
}

const tailParts = ({ app }: TestApp, dir: string) => {
  const files = segmentFiles(dir);
  let next = 0;
  return {
    db: app.store.db,
    clock: { now: Date.now },
    ids: (prefix: string) => `${prefix}_${process.pid}_${++next}`,
    places: { here: 'files' as const, of: () => files },
    memory: { bytes: 0 },
    onStored: () => {},
  };
};

const timed = async (work: () => unknown): Promise<number> => {
  const began = performance.now();
  await work();
  return performance.now() - began;
};

const median = (values: number[]): string => values.toSorted((a, b) => a - b)[values.length >> 1]!.toFixed(0);

async function search(): Promise<void> {
  const app = await startApp({ tokenLimit: 100_000 });
  cleanUp.push(app.stop);
  for (const paced of [true, false]) await searchIn(app, paced);
}

async function searchIn(app: TestApp, paced: boolean): Promise<void> {
  const { path, folder, plain } = await fill(app, 100 * megabyte, paced);
  await app.call('GET', `${path}?search=warm-up`);
  const shell = (command: string, ...args: string[]) =>
    execFileSync('sh', ['-c', `${command} || true`, 'sh', ...args], { stdio: 'ignore' });
  const terms = {
    'nothing at all': 'no-such-word',
    'nothing, three letters': 'xyz',
    'the oldest line': lineAt(1).slice(33, 53),
    'every line': 'orders',
  };
  for (const [what, term] of Object.entries(terms)) {
    const [own, zstd, grep]: number[][] = [[], [], []];
    for (let round = 0; round < 7; round++) {
      own!.push(await timed(() => app.call('GET', `${path}?search=${encodeURIComponent(term)}`)));
      zstd!.push(await timed(() => shell('cat "$2"/*.zst | zstd -dcq | grep -ciF -- "$1"', term, folder)));
      grep!.push(await timed(() => shell('grep -ciF -- "$1" "$2"', term, plain)));
    }
    const name = `search of 100 MB printed ${paced ? 'at 1 MB/s' : 'as fast as possible'} for ${what}`;
    const of = `zstdcat | grep -i ${median(zstd!)} ms; grep -i ${median(grep!)} ms`;
    report(name, `${median(own!)} ms`, '< 300 ms', Number(median(own!)) < 300, of);
  }
}

/** A program that prints 100 MB/s, if it is let. It costs little itself: only the times of its lines change. */
function floodingEngine(bytesPerS: number): Pick<Engine, 'follow'> {
  const lines = Array.from({ length: 1000 }, (_, n) =>
    encodeLines([{ time: timeText(0, n), stream: 'stdout', text: lineAt(n) }]),
  );
  const starts: number[] = [];
  let end = 0;
  for (const line of lines) {
    starts.push(end);
    end += line.length;
  }
  const chunk = Buffer.concat(lines);
  const milliseconds = 'YYYY-MM-DDThh:mm:ss.mmm'.length;
  return {
    async *follow(_id, _after, signal) {
      const began = performance.now();
      for (let bytes = 0; !signal.aborted; bytes += chunk.length) {
        const time = Buffer.from(timeText(Date.now()));
        for (const start of starts) time.copy(chunk, start + 1, 0, milliseconds);
        yield chunk;
        const aheadMs = (bytes / bytesPerS) * 1000 - (performance.now() - began);
        if (aheadMs > 0) await pause(aheadMs);
      }
    },
  };
}

/** By how much this process grew, once what every process needs first is there. */
async function measureMemory(what: string, seconds: number): Promise<void> {
  await pause(warmUpMs);
  const before = process.memoryUsage();
  let most = before;
  for (let n = 0; n < seconds * 10; n++) {
    await pause(100);
    const now = process.memoryUsage();
    if (now.rss > most.rss) most = now;
  }
  const grown = (what: keyof NodeJS.MemoryUsage) => ((most[what] - before[what]) / megabyte).toFixed(0);
  const of = `heap ${grown('heapUsed')}, buffers ${grown('arrayBuffers')}`;
  report(`growth of memory while ${what}`, `${grown('rss')} MB`, '< 50 MB', Number(grown('rss')) < 50, of);
}

async function flood(): Promise<void> {
  const app = await startApp({ tokenLimit: 100_000, env: { SLUICE_LOGS_MB: '20' } });
  cleanUp.push(app.stop);
  const project = (await app.call('POST', '/v1/projects', { body: { name: 'Flood' } })).body.id;
  const key = { projectId: project, environment: 'production' };
  let bytes = 0;
  const parts = {
    ...tailParts(app, join(app.dataDir, 'logs')),
    log: app.app.log,
    onLines: (_account: string, _instance: unknown, lines: Buffer) => {
      bytes += lines.length;
    },
  };
  const instance = { id: 'ins_flood', key, revision: 1 };
  const collection = new Collection(parts, instance, floodingEngine(100 * megabyte) as Engine);
  await pause(1000);
  bytes = 0;
  const seconds = 15;
  await measureMemory('a program prints 100 MB/s', seconds);
  note('collected of 100 MB/s', `${(bytes / megabyte / seconds).toFixed(0)} MB/s`);
  await collection.stop();
}

async function dockerFlood(): Promise<void> {
  const { image, region } = await onDocker('flooding');
  const app = await startApp({ tokenLimit: 100_000, env: { SLUICE_REGIONS: region, SLUICE_LOGS_MB: '5' } });
  cleanUp.push(app.stop);
  const shop = await Shop.open(app.url);
  await shop.released(image);
  await measureMemory('a program prints as much as Docker takes', 20);
  const { db } = app.app.store;
  const rows = await db.selectFrom('log_segment').select(['bytes', 'lines', 'raw_bytes']).execute();
  const stored = rows.reduce((sum, row) => sum + row.bytes, 0) / megabyte;
  const lost = await shop.api('GET', '/environments/production/logs?stream=system&limit=1');
  const of = `of lost lines the log says: ${lost.body.data[0]?.text ?? 'nothing'}`;
  note('… stored of at most 5 MB', `${stored.toFixed(1)} MB`, of);
}

try {
  if (runs('search')) await search();
  if (runs('flood')) await flood();
  if (dockerMissing) console.log(`count and flood on Docker: ${dockerMissing}`);
  else {
    if (runs('flood')) await dockerFlood();
    if (runs('count')) await count();
  }
} finally {
  for (const step of cleanUp.reverse()) await step();
}

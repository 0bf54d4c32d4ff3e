// What instances print: collected from their engines, stored, read and followed.
import { join } from 'node:path';
import { Counter, Gauge, type Registry } from 'prom-client';
import type { Config } from '../config.ts';
import type { LogPlace } from '../db/tables.ts';
import type { ServedRoute } from '../http/api/served-route.ts';
import { databaseOf } from '../lib/clock.ts';
import type { Loop } from '../lib/loops.ts';
import { Collector } from '../logs/log-collector.ts';
import { logRoutes } from '../logs/log-routes.ts';
import { type Receiver, Shipper } from '../logs/log-shipper.ts';
import { otlpReceiver } from '../logs/otlp-receiver.ts';
import type { ReadParts } from '../logs/read/log-page.ts';
import { LogReads } from '../logs/read/log-reads.ts';
import { LogStreams } from '../logs/read/log-streams.ts';
import { Scanners } from '../logs/read/scanners.ts';
import { sweepBytes, trimLogs } from '../logs/store/log-retention.ts';
import type { Places, SegmentBytes } from '../logs/store/segment-bytes.ts';
import { segmentFiles } from '../logs/store/segment-files.ts';
import { segmentObjects } from '../logs/store/segment-objects.ts';
import { segmentRows } from '../logs/store/segment-rows.ts';
import { syslogReceiver } from '../logs/syslog-receiver.ts';
import type { Regions } from '../regions/regions.ts';
import { subscribe } from '../signals/signals.ts';
import type { Common } from './common.ts';

export interface Logs {
  routes: ServedRoute[];
  stored: ReadParts & { reads: LogReads };
  follow: Collector['follow'];
  take: Collector['take'];
  start(): void;
  closeStreams(): void;
  stop(): Promise<void>;
  close(): Promise<void>;
}

const megabyte = 1024 * 1024;
const trimEveryMs = 60_000;
const sweepEveryMs = 3_600_000;

export function createLogs(common: Common, config: Config, regions: Regions, registry: Registry): Logs {
  const { db, dialect, loops, log, processId } = common;
  const clock = databaseOf(common.clock);
  const places = placesOf(common, config);
  const maxBytes = config.logsMb * megabyte;
  const scanners = new Scanners();
  const stored = { db, places, scanners, reads: new LogReads() };
  const streams = new LogStreams({ ...stored, clock: common.clock, log });
  const memory = { bytes: 0 };
  const shippers = receiversOf(config).map((receiver) => new Shipper(receiver, log));
  let storedBytes = 0;
  let trimming: Loop | null = null;
  const collector = new Collector({
    ...common,
    clock,
    places,
    regions,
    memory,
    owner: dialect === 'sqlite' ? null : processId,
    onLines(accountId, instance, lines) {
      for (const shipper of shippers) shipper.add(accountId, instance, lines);
    },
    onStored(bytes) {
      storedBytes += bytes;
      // Not only now and then: a program that prints a lot must not fill the disk meanwhile.
      if (storedBytes < maxBytes / 10) return;
      storedBytes = 0;
      trimming?.wake();
    },
  });
  measure(registry, memory, shippers);
  const running: Loop[] = [];
  const unsubscribe: (() => void)[] = [];
  const limits = { ...common, places, maxBytes, days: config.logsDays };
  return {
    routes: logRoutes({ ...stored, streams }),
    stored,
    follow: (instance, engine) => collector.follow(instance, engine),
    take: (instance, engine) => collector.take(instance, engine),
    start() {
      if (!config.roles.includes('worker')) return;
      collector.start();
      trimming = loops.start({ name: 'old logs', intervalMs: trimEveryMs, step: () => trimLogs(limits) });
      const sweep = () => sweepBytes({ db, places }, clock.now());
      const sweeping = loops.start({ name: 'logs without owner', intervalMs: sweepEveryMs, step: sweep });
      running.push(trimming, sweeping);
      unsubscribe.push(subscribe(db, 'removals', () => sweeping.wake()));
    },
    closeStreams: () => streams.stop(),
    async stop() {
      for (const end of unsubscribe) end();
      await collector.stop();
      for (const shipper of shippers) shipper.stop();
      await Promise.all(running.map((loop) => loop.stop()));
    },
    close: () => scanners.close(),
  };
}

function placesOf({ db, dialect, clock }: Common, { dataDir, logsS3 }: Config): Places {
  const all: Partial<Record<LogPlace, SegmentBytes>> = {
    files: segmentFiles(join(dataDir, 'logs')),
    database: segmentRows(db, databaseOf(clock)),
    ...(logsS3 && { s3: segmentObjects(logsS3) }),
  };
  const beside = dialect === 'sqlite' ? 'files' : 'database';
  return { here: logsS3 ? 's3' : beside, of: (place) => all[place] ?? null };
}

function receiversOf({ logsSyslog, logsOtlp, logsOtlpHeaders }: Config): Receiver[] {
  const syslog = logsSyslog ? [syslogReceiver(logsSyslog)] : [];
  const otlp = logsOtlp === null ? [] : [otlpReceiver({ url: logsOtlp, headers: logsOtlpHeaders })];
  return [...syslog, ...otlp];
}

function measure(registry: Registry, memory: { bytes: number }, shippers: Shipper[]): void {
  new Gauge({
    name: 'sluice_logs_held_bytes',
    help: 'Lines of instances in memory, on their way into the store.',
    registers: [registry],
    collect() {
      this.set(memory.bytes);
    },
  });
  if (shippers.length === 0) return;
  const names = { shipped: 'sluice_logs_shipped_lines_total', dropped: 'sluice_logs_dropped_lines_total' };
  for (const outcome of ['shipped', 'dropped'] as const) {
    new Counter({
      name: names[outcome],
      help: `Lines of instances that were ${outcome === 'shipped' ? 'sent to' : 'not sent for want of room to'} a receiver.`,
      labelNames: ['receiver'],
      registers: [registry],
      collect() {
        this.reset();
        for (const shipper of shippers) this.inc({ receiver: shipper.receiver.name }, shipper[outcome]);
      },
    });
  }
}

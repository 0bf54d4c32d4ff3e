import * as contract from '../contract/deployments.ts';
import type { Db } from '../db/database.ts';
import type { Engine, LogLine } from '../engines/engine.ts';
import { keyOf } from '../environments/environment-key.ts';
import { type EnvironmentRow, findEnvironment } from '../environments/environment-queries.ts';
import { type ApiCall, type ServedRoute, serve } from '../http/api/served-route.ts';
import { isoTime } from '../lib/iso-time.ts';
import { latestThatFit, streamOf, textBytesOf, timeMs } from '../lib/log-lines.ts';
import { endOfTimeMs, type ReadParts, readPage } from '../logs/read/log-page.ts';
import type { LogReads } from '../logs/read/log-reads.ts';
import type { Regions } from '../regions/regions.ts';
import { type DeploymentRow, requireDeployment } from './deployment-queries.ts';
import { listInstances } from './instance-queries.ts';

const defaultLogTail = 100;
const maxLineLength = 20_000;
/** Of all lines of a response together. */
const maxBytes = 1024 * 1024;
/** Of what is read of one instance: somewhat more, to see whether there is more. */
const maxBytesRead = maxBytes + 128 * 1024;
const instancesAtOnce = 2;

type Query = ApiCall<typeof contract.getDeploymentLogs>['query'];
type InstanceLine = LogLine & { instance: string };

export interface LogParts {
  regions: Regions;
  storedLogs: ReadParts & { reads: LogReads };
}

export function deploymentLogRoutes({ regions, storedLogs }: LogParts): ServedRoute[] {
  return [
    serve(contract.getDeploymentLogs, async (call, db) => {
      const row = await requireDeployment(db, call.caller, call.params);
      const environment = (await findEnvironment(db, row.project_id, row.environment))!;
      const read = () => readLogs(regions, storedLogs, call.query, db, row, environment);
      return { body: await storedLogs.reads.run(call.caller.accountId, read) };
    }),
  ];
}

/**
 * The latest lines of all instances of the deployment's revision, oldest first: of those that are there from the
 * engine, which has them at once, and of those that are gone, or whose engine is away, from the store.
 */
async function readLogs(
  regions: Regions,
  stored: ReadParts,
  { tail = defaultLogTail, since }: Query,
  db: Db,
  row: DeploymentRow,
  { region }: EnvironmentRow,
) {
  const state = regions.find(region);
  const rows = await listInstances(db, keyOf(row));
  const own = state?.available ? rows.filter((item) => item.revision === row.revision).reverse() : [];
  const window = { tail, maxBytes: maxBytesRead, ...(since !== undefined && { sinceMs: Date.parse(since) }) };
  const live = state?.available ? await readLatest(state.engine, own, window) : nothing;
  const gone = await readStored(stored, row, window, new Set(own.map(({ id }) => id)));
  const latest = [...gone, ...live.lines].sort((a, b) => a.at - b.at).slice(-tail);
  const lines = latestThatFit(latest, maxBytes);
  const data = lines.map(({ at, instance, stream, text }) => ({ at: isoTime(at), instance, stream, text }));
  return { data, truncated: live.truncated || lines.length < latest.length };
}

const nothing = { lines: [] as InstanceLine[], truncated: false };

async function readStored(
  stored: ReadParts,
  row: DeploymentRow,
  { tail, sinceMs = -1 }: { tail: number; sinceMs?: number },
  without: ReadonlySet<string>,
): Promise<InstanceLine[]> {
  const { entries } = await readPage(stored, keyOf(row), {
    accountId: row.account_id,
    fromMs: sinceMs + 1,
    toMs: endOfTimeMs,
    revision: row.revision,
    without,
    kind: null,
    search: null,
    order: 'newest',
    limit: tail,
    after: null,
  });
  return entries.reverse().flatMap(({ time, kind, instance, text }) => {
    const stream = streamOf(kind) === 'stdout' ? ('stdout' as const) : ('stderr' as const);
    return text.split('\n').map((line) => ({ at: timeMs(time), instance, stream, text: line }));
  });
}

/**
 * A few instances at a time, the newest first; after each of these only what may still be part of the response is kept.
 */
async function readLatest(engine: Engine, instances: { id: string }[], window: Parameters<Engine['logs']>[1]) {
  let kept: InstanceLine[] = [];
  let truncated = false;
  for (let next = 0; next < instances.length; next += instancesAtOnce) {
    // Once the response is full, only lines later than its first are of use.
    const isFull = truncated || kept.length === window.tail;
    const sinceMs = Math.max(window.sinceMs ?? 0, isFull ? kept[0]!.at : 0);
    const read = await Promise.all(
      instances.slice(next, next + instancesAtOnce).map(async ({ id }) => {
        const lines = await engine.logs(id, { ...window, sinceMs });
        truncated ||= textBytesOf(lines) > maxBytes;
        return lines.map((line) => ({ ...line, text: line.text.slice(0, maxLineLength), instance: id }));
      }),
    );
    const latest = [...kept, ...read.flat()].sort((a, b) => a.at - b.at).slice(-window.tail);
    kept = latestThatFit(latest, maxBytes);
    truncated ||= kept.length < latest.length;
  }
  return { lines: kept, truncated };
}

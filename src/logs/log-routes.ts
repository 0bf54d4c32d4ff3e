import { ApiError } from '../contract/errors.ts';
import * as contract from '../contract/logs.ts';
import { revisionNumber } from '../contract/references.ts';
import { requireEnvironment } from '../environments/environment-queries.ts';
import { type ApiCall, type ServedRoute, serve, serveStream } from '../http/api/served-route.ts';
import { kindOf } from '../lib/log-lines.ts';
import {
  endOfTimeMs,
  type LogPage,
  type PageQuery,
  parsePlace,
  parseResumeId,
  placeText,
  presentEntry,
  type ReadParts,
  readPage,
} from './read/log-page.ts';
import type { LogReads } from './read/log-reads.ts';
import type { LogStreams } from './read/log-streams.ts';

interface LogRouteParts extends ReadParts {
  reads: LogReads;
  streams: LogStreams;
}

/** After a reconnection, entries of other instances that were stored late are sent again. */
const resumeOverlapMs = 2000;

export function logRoutes(parts: LogRouteParts): ServedRoute[] {
  const { reads, streams } = parts;
  return [
    serve(contract.listLogs, async (call, db) => {
      const environment = await requireEnvironment(db, call.caller, call.params);
      const key = { projectId: environment.project_id, environment: environment.name };
      const page = await reads.run(call.caller.accountId, () => readPage(parts, key, queryOf(call)));
      return { body: presentPage(call, page) };
    }),

    serveStream(contract.streamLogs, async (call, db, header) => {
      const { caller, query } = call;
      const environment = await requireEnvironment(db, caller, call.params);
      const resume = readResumeId(header('last-event-id'));
      const sinceMs = query.since === undefined ? null : Date.parse(query.since);
      return streams.follow({
        accountId: caller.accountId,
        tokenId: caller.sessionId ?? caller.tokenId,
        key: { projectId: environment.project_id, environment: environment.name },
        filter: filterOf(query),
        fromMs: resume ? resume.atMs - resumeOverlapMs : sinceMs,
        after: resume?.place ?? null,
      });
    }),
  ];
}

type Filters = Pick<ApiCall<typeof contract.listLogs>['query'], 'revision' | 'instance' | 'stream' | 'search'>;

const filterOf = ({ revision, instance, stream, search }: Filters) => ({
  revision: revision === undefined ? undefined : revisionNumber(revision),
  instance,
  kind: stream === undefined ? null : kindOf[stream],
  search: search ?? null,
});

function queryOf({ caller, query, page }: ApiCall<typeof contract.listLogs>): PageQuery {
  return {
    accountId: caller.accountId,
    ...filterOf(query),
    fromMs: query.since === undefined ? 0 : Date.parse(query.since),
    // Times are stored more finely than the API gives them: what was printed within the millisecond before is meant.
    toMs: query.until === undefined ? endOfTimeMs : Date.parse(query.until) - 1,
    order: query.order ?? 'newest',
    limit: page.limit + 1,
    after: page.after === null ? null : parsePlace(page.after),
  };
}

function presentPage(call: ApiCall<typeof contract.listLogs>, { entries, stoppedAt }: LogPage) {
  const found = call.paginate(entries, placeText, presentEntry);
  if (stoppedAt === null || found.page.has_more) return found;
  // One more row than the page holds makes a cursor: it goes on from where the search has come to.
  const { page } = call.paginate([...filled(call.page.limit, stoppedAt), stoppedAt], placeText, () => null);
  return { data: found.data, page };
}

const filled = (count: number, place: LogPage['stoppedAt']) => Array.from({ length: count }, () => place!);

function readResumeId(id: string | undefined) {
  if (id === undefined) return null;
  const resume = parseResumeId(id);
  if (resume) return resume;
  throw new ApiError('invalid_request', 'Last-Event-ID is not one of this stream.', {
    details: [{ path: 'header.last-event-id', message: 'must be the id of an event of this stream' }],
  });
}

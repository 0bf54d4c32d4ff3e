import { ApiError, notFound } from '../contract/errors.ts';
import * as contract from '../contract/events.ts';
import type { DialectName } from '../db/dialect.ts';
import { type ServedRoute, serve, serveStream } from '../http/api/served-route.ts';
import { idFloor, idPattern } from '../lib/ids.ts';
import { requireProject } from '../projects/project-queries.ts';
import { beginning, findLatestPosition, findPositionOf, listIdsBehind } from './event-positions.ts';
import { filterFor, findEvent, listEvents, presentEvent } from './event-queries.ts';
import type { EventStreams } from './event-streams.ts';

const eventId = new RegExp(idPattern('evt'));
/** Asks for everything from the oldest event on. */
const beforeAll = idFloor('evt', 0);

interface EventParts {
  dialect: DialectName;
  streams: EventStreams;
}

export function eventRoutes({ dialect, streams }: EventParts): ServedRoute[] {
  return [
    serve(contract.listEvents, async (call, db) => {
      if (call.query.project_id !== undefined) await requireProject(db, call.caller, call.query.project_id);
      const rows = await listEvents(db, filterFor(call.caller, call.query), call.page);
      return { body: call.paginate(rows, (row) => row.id, presentEvent) };
    }),

    serveStream(contract.streamEvents, async (call, db, header) => {
      const { caller, query } = call;
      if (query.project_id !== undefined) await requireProject(db, caller, query.project_id);
      const lastId = header('last-event-id');
      if (lastId !== undefined && !eventId.test(lastId)) {
        throw new ApiError('invalid_request', 'Last-Event-ID is not the id of an event.', {
          details: [{ path: 'header.last-event-id', message: 'must be the id of an event' }],
        });
      }
      const known =
        lastId === undefined
          ? await findLatestPosition(db, dialect, caller.accountId)
          : await findPositionOf(db, caller.accountId, lastId);
      const skipped = lastId === undefined ? await listIdsBehind(db, caller.accountId, known!) : [];
      const resetFrom = known || lastId === beforeAll ? null : lastId!;
      const changes = query.changes === 'true';
      return streams.follow({
        tokenId: caller.sessionId ?? caller.tokenId,
        filter: filterFor(caller, query),
        from: known ?? beginning,
        skipped: new Set(skipped),
        resetFrom,
        changes,
      });
    }),

    serve(contract.getEvent, async (call, db) => {
      const row = await findEvent(db, call.caller, call.params.evt);
      if (!row) throw notFound('evt', call.params.evt);
      return { body: presentEvent(row) };
    }),
  ];
}

import { ApiError, notFound } from '../contract/errors.ts';
import { allows, type Caller, type Scope } from '../contract/scopes.ts';
import * as contract from '../contract/sessions.ts';
import { type ServedRoute, serve } from '../http/api/served-route.ts';
import type { Clock } from '../lib/clock.ts';
import { endSession, findSession, listSessions, presentSession } from './session-queries.ts';

/** A token that is bound to projects sees its own sessions only. */
const seesAll = ({ scopes, projectIds }: Caller, scope: Scope): boolean => projectIds === null && allows(scopes, scope);

export function sessionRoutes({ clock }: { clock: Clock }): ServedRoute[] {
  return [
    serve(contract.listSessions, async (call, db) => {
      const rows = await listSessions(db, call.caller, seesAll(call.caller, 'tokens:read'), clock.now(), call.page);
      return {
        body: call.paginate(
          rows,
          (row) => row.id,
          (row) => presentSession(row, call.caller),
        ),
      };
    }),

    serve(contract.endSession, async (call, tx) => {
      const { caller } = call;
      const row = await findSession(tx, caller, call.params.ses);
      const isOwn = row?.token_id === caller.tokenId;
      if (!row || (!isOwn && !seesAll(caller, 'tokens:write'))) throw notFound('ses', call.params.ses);
      const beyond = (JSON.parse(row.scopes) as Scope[]).filter((scope) => !allows(caller.scopes, scope));
      if (beyond.length > 0) {
        throw new ApiError('insufficient_scope', 'A token cannot end the session of one with more permissions.', {
          details: beyond.map((scope) => ({ path: 'scopes', message: scope })),
        });
      }
      await endSession(tx, row.id, clock.now());
      return { body: undefined };
    }),
  ];
}

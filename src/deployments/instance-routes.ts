// What runs in an environment now, and what ended there lately.

import { listInstances as contract, type Instance } from '../contract/instances.ts';
import { revisionId } from '../contract/references.ts';
import { requireEnvironment } from '../environments/environment-queries.ts';
import { type ServedRoute, serve } from '../http/api/served-route.ts';
import { type Clock, deadlineOf } from '../lib/clock.ts';
import { isoTime, isoTimeOrNull } from '../lib/iso-time.ts';
import {
  type CheckFields,
  type InstanceEndRow,
  type InstanceRow,
  listInstanceEnds,
  listInstances,
} from './instance-queries.ts';

export function instanceRoutes({ clock }: { clock: Clock }): ServedRoute[] {
  return [
    serve(contract, async (call, db) => {
      const row = await requireEnvironment(db, call.caller, call.params);
      const key = { projectId: row.project_id, environment: row.name };
      const [running, ended] = await Promise.all([
        listInstances(db, key),
        listInstanceEnds(db, key, deadlineOf(clock).now()),
      ]);
      // Both are few: no more run than replicas allow, and a fixed number of ends is kept.
      const { limit, after } = call.page;
      const all = [...running.map(presentRunning), ...ended.map(presentEnded)]
        .filter(({ id }) => after === null || id < after)
        .sort((a, b) => (a.id < b.id ? 1 : -1))
        .slice(0, limit + 1);
      return {
        body: call.paginate(
          all,
          ({ id }) => id,
          (instance) => instance,
        ),
      };
    }),
  ];
}

type Common = Pick<InstanceRow, 'id' | 'revision' | 'restarts' | 'started_at' | 'node'> & CheckFields;

const presentCommon = (row: Common) => ({
  id: row.id,
  revision: revisionId(row.revision),
  restarts: row.restarts,
  started_at: isoTimeOrNull(row.started_at),
  node: row.node,
  last_check:
    row.checked_at === null
      ? null
      : { at: isoTime(row.checked_at), ok: row.check_ok === 1, message: row.check_message ?? '' },
});

const presentRunning = (row: InstanceRow): Instance => ({
  ...presentCommon(row),
  state: row.state === 'starting' && row.started_at === null ? 'pending' : row.state,
  ended: null,
});

const presentEnded = (row: InstanceEndRow): Instance => ({
  ...presentCommon(row),
  state: 'ended',
  ended: { at: isoTime(row.ended_at), exit_code: row.exit_code, reason: row.reason },
});

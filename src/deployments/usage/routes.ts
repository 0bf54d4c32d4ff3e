import { spanOf } from '../../alerts/series.ts';
import { getUsage } from '../../contract/metrics.ts';
import { revisionNumber } from '../../contract/revision-id.ts';
import { requireEnvironment } from '../../environments/queries.ts';
import { type ServedRoute, serve } from '../../http/api/served-route.ts';
import type { Clock } from '../../lib/clock.ts';
import { readUsageSeries } from './series.ts';

export function usageRoutes({ clock }: { clock: Clock }): ServedRoute[] {
  return [
    serve(getUsage, async (call, db) => {
      const environment = await requireEnvironment(db, call.caller, call.params);
      const nowMs = clock.now();
      const { revision, ...span } = call.query;
      const number = revision === undefined ? null : revisionNumber(revision);
      return { body: await readUsageSeries(db, environment, number, spanOf(span, nowMs), nowMs) };
    }),
  ];
}

import { listRegions } from '../contract/service.ts';
import { type ServedRoute, serve } from '../http/api/served-route.ts';
import { isoTimeOrNull } from '../lib/iso-time.ts';
import type { Regions } from './regions.ts';

export function regionRoutes(regions: Regions): ServedRoute[] {
  return [
    serve(listRegions, async (call) => {
      const { limit, after } = call.page;
      const sorted = regions.all().sort((a, b) => (a.name < b.name ? -1 : 1));
      const rows = sorted.filter((region) => after === null || region.name > after).slice(0, limit + 1);
      return {
        body: call.paginate(
          rows,
          (region) => region.name,
          (region) => ({
            name: region.name,
            engine: region.engine.kind,
            available: region.available,
            last_checked_at: isoTimeOrNull(region.lastCheckedAt),
            ...(region.engine.hosts && { hosts: region.engine.hosts() }),
          }),
        ),
      };
    }),
  ];
}

// sluice metrics: traffic of each revision over a period, with a line of its course. sluice audit: who changed what.
import type { Metrics } from '../../contract/metrics.ts';
import { chooseEnvironment, findProject, namedProject, takePaged } from '../choose-target.ts';
import { connect } from '../connect.ts';
import { type Command, inEnvironment, inProject, paged, verb } from '../frame/command.ts';
import { readTime } from '../frame/parse.ts';
import { exit } from '../io.ts';
import { count, milliseconds, percent } from '../terminal/output.ts';

type Series = Metrics['series'][number];

const blocks = '▁▂▃▄▅▆▇█';
const cells = 24;

/** The rate of requests over the period, oldest first; the highest of it is a full block. */
export function sparkline({ points }: Pick<Series, 'points'>): string {
  const size = Math.max(1, Math.ceil(points.length / cells));
  const rates: number[] = [];
  for (let at = 0; at < points.length; at += size)
    rates.push(points.slice(at, at + size).reduce((sum, { request_rate }) => sum + request_rate, 0) / size);
  const highest = Math.max(...rates, 0);
  if (highest === 0) return '';
  return rates.map((rate) => (rate === 0 ? ' ' : blocks[Math.ceil((rate / highest) * blocks.length) - 1])).join('');
}

interface Sums {
  requests: number;
  errorRate: number | null;
  p50: number | null;
  p95: number | null;
}

/** Latencies as the middle of the steps, each as often as it had requests: that of all requests is not known. */
function sumsOf({ points }: Series): Sums {
  const requests = points.reduce((sum, point) => sum + point.requests, 0);
  const errors = points.reduce((sum, point) => sum + point.requests * (point.error_rate ?? 0), 0);
  const typical = (field: 'p50_ms' | 'p95_ms') => {
    const known = points.filter((point) => point[field] !== null).sort((a, b) => a[field]! - b[field]!);
    let left = known.reduce((sum, point) => sum + point.requests, 0) / 2;
    for (const point of known) {
      left -= point.requests;
      if (left <= 0) return point[field];
    }
    return null;
  };
  return {
    requests,
    errorRate: requests === 0 ? null : errors / requests,
    p50: typical('p50_ms'),
    p95: typical('p95_ms'),
  };
}

export const metrics: Command = {
  verbs: {
    '': verb({
      about: 'show requests, errors and latencies of each revision over a period',
      options: {
        ...inEnvironment,
        since: { type: 'string', value: 'TIME', about: 'from then on: 15m, 1h, 2d ago, or a time (default: 1h)' },
        until: { type: 'string', value: 'TIME', about: 'until then, in the same format' },
        revision: { type: 'string', short: 'r', value: 'R', about: 'only of this revision' },
      },
      async run(context) {
        const { io, out } = context;
        const { sluice, project, environment } = await chooseEnvironment(context);
        const [until, revision] = [context.text('until'), context.text('revision')];
        const measured = await sluice.metrics.get(project.id, {
          environment,
          from: readTime(context.text('since') ?? '1h', 'since', io.now()),
          ...(until !== undefined && { to: readTime(until, 'until', io.now()) }),
          ...(revision !== undefined && { revision }),
        });
        if (out.json) {
          out.result(measured, () => {});
          return exit.done;
        }
        const rows = measured.series.map((series) => ({ series, sums: sumsOf(series) }));
        out.list(
          rows,
          [
            { title: 'REV', of: ({ series }) => series.revision },
            { title: 'REQUESTS', of: ({ sums }) => count(sums.requests), right: true },
            { title: 'ERRORS', of: ({ sums }) => percent(sums.errorRate), right: true },
            { title: 'P50', of: ({ sums }) => milliseconds(sums.p50), right: true, optional: 1 },
            { title: 'P95', of: ({ sums }) => milliseconds(sums.p95), right: true },
            { title: 'REQUESTS OVER TIME', of: ({ series }) => sparkline(series), optional: 2 },
          ],
          `${environment} of ${project.slug} had no requests in that time.`,
        );
        return exit.done;
      },
    }),
  },
  notes: 'P50 and P95 are those of the typical step of the period, not of all its requests at once.',
  examples: ['sluice metrics', 'sluice metrics --since 1d --env staging', 'sluice metrics -r r14 --json'],
};

export const audit: Command = {
  verbs: {
    '': verb({
      about: 'list changes made through the API, newest first: when, by which token, what',
      options: {
        ...inProject,
        ...paged,
        action: { type: 'string', value: 'A', about: 'only this operation, or all of a kind: environments' },
        by: { type: 'string', value: 'TOKEN', about: 'only those of the token with this id' },
        since: { type: 'string', value: 'TIME', about: 'from then on: 15m, 1h, 2d ago, or a time' },
        search: { type: 'string', short: 's', value: 'TEXT', about: 'words in action, path, token or project' },
      },
      async run(context) {
        const sluice = await connect(context);
        const named = namedProject(context);
        const since = context.text('since');
        const [action, by, search] = [context.text('action'), context.text('by'), context.text('search')];
        const project = named === undefined ? null : await findProject(sluice, named);
        // What all of them have in common says nothing.
        const shown = (resource: string) => (project ? resource.replace(`/projects/${project.id}/`, '') : resource);
        const query = {
          ...(project && { project_id: project.id }),
          ...(action !== undefined && { action }),
          ...(by !== undefined && { by }),
          ...(search !== undefined && { search }),
          ...(since !== undefined && { since: readTime(since, 'since', context.io.now()) }),
        };
        context.out.list(
          await takePaged(context, sluice.auditLog.list(query)),
          [
            { title: 'WHEN', of: ({ created_at }) => context.out.time(created_at) },
            { title: 'BY', of: ({ token_name, token_id }) => token_name ?? token_id },
            { title: 'ACTION', of: ({ action: what }) => what },
            { title: 'RESOURCE', of: ({ resource }) => shown(resource) },
            { title: 'ADDRESS', of: ({ address }) => address, optional: 1 },
            { title: 'REQUEST', of: ({ request_id }) => request_id, whole: true, optional: 2 },
          ],
          'Nothing was changed.',
        );
        return exit.done;
      },
    }),
  },
  examples: ['sluice audit', 'sluice audit --project shop --since 1d', 'sluice audit --action environments'],
};

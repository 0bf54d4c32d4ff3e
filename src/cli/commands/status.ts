// sluice status, ps and regions: what runs, how well, and where.
import type { Sluice } from '../../client/index.ts';
import type { Region } from '../../client/types.ts';
import type { Environment } from '../../contract/environments.ts';
import type { Instance } from '../../contract/instances.ts';
import type { Project } from '../../contract/projects.ts';
import { chooseEnvironment, chooseProject, findProject, namedProject, take, takePaged } from '../choose-target.ts';
import { connect } from '../connect.ts';
import { type Command, type CommandContext, inEnvironment, inProject, paged, verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import {
  ago,
  type Colour,
  colourOf,
  count,
  healthColour,
  healthLine,
  milliseconds,
  percent,
} from '../terminal/output.ts';
import { type Cell, clean, fold, layOut } from '../terminal/table.ts';
import { tagOf } from './diff.ts';
import { trafficOf } from './environments.ts';

interface Row {
  project: Project;
  environment: Environment;
  image: string | null;
  state: string;
}

async function rowsOf(sluice: Sluice, project: Project): Promise<Row[]> {
  const environments = await take(sluice.environments.list(project.id), 100);
  return Promise.all(environments.map((environment) => rowOf(sluice, project, environment)));
}

async function rowOf(sluice: Sluice, project: Project, environment: Environment): Promise<Row> {
  const { active_revision: active, in_progress_deployment: running, locked, name } = environment;
  const [revision, deployment] = await Promise.all([
    active === null ? null : sluice.revisions.get(project.id, name, active),
    running === null ? null : sluice.deployments.get(project.id, running),
  ]);
  const share = deployment?.canary ? ` ${deployment.canary.percent} %, ${deployment.canary.phase}` : '';
  const idle = locked ? `locked: ${locked.reason}` : active === null ? 'empty' : 'serving';
  return { project, environment, image: revision?.image ?? null, state: deployment ? deployment.state + share : idle };
}

const isPending = ({ environment }: Row): boolean => environment.pending_changes.length > 0;

/** Changed settings that apply with the next deployment. */
const pendingOf = ({ environment }: Row): string =>
  environment.pending_changes.map(({ field }) => field).join(', ') || '-';

const colourOfRow = ({ state }: Row) =>
  state === 'serving' ? 'green' : state === 'empty' ? 'dim' : state.startsWith('locked') ? 'red' : colourOf(state);

export const status: Command = {
  verbs: {
    '': verb({
      about: 'show environments with their health, revisions and traffic, of one project or of all',
      options: { ...inProject, brief: { type: 'boolean', about: 'a line for each environment, with its traffic now' } },
      async run(context) {
        if (context.flag('brief') && !context.out.json) return brief(context);
        const sluice = await connect(context);
        const named = namedProject(context);
        const projects = named ? [await findProject(sluice, named)] : await take(sluice.projects.list(), 50);
        const rows = (await Promise.all(projects.map((project) => rowsOf(sluice, project)))).flat();
        if (context.out.json) {
          const plain = rows.map(({ project, environment, ...rest }) => ({
            project: project.slug,
            ...rest,
            environment,
          }));
          context.out.result(plain, () => {});
          return exit.done;
        }
        context.out.list(
          rows,
          [
            { title: 'PROJECT', of: ({ project }) => project.slug, whole: true },
            { title: 'ENV', of: ({ environment }) => environment.name, whole: true },
            {
              title: 'HEALTH',
              whole: true,
              of: ({ environment }) => environment.health.state,
              colour: ({ environment }) => healthColour(environment.health),
            },
            { title: 'STATE', of: ({ state }) => state, colour: colourOfRow, optional: 1 },
            { title: 'TRAFFIC', of: ({ environment }) => trafficOf(environment), optional: 2 },
            { title: 'IMAGE', of: ({ image }) => image, whole: true },
            { title: 'URL', of: ({ environment }) => environment.url, whole: true, optional: 4 },
            ...(rows.some(isPending) ? [{ title: 'PENDING', of: pendingOf, optional: 3 }] : []),
          ],
          'There is no project yet. Create one: sluice projects create "My shop"',
        );
        for (const { project, environment } of rows) {
          const wrong = healthLine(`${project.slug} ${environment.name}`, environment.health, context.out);
          if (wrong !== null) context.out.line(wrong);
        }
        return exit.done;
      },
    }),
  },
  notes: 'An environment that is degraded or down gets a line with since when and why.',
  examples: ['sluice status', 'sluice status --project shop --brief'],
};

const recentMs = 300_000;

/** What `sluice` alone prints: how the project is, what happened last, what could be next. */
async function brief(context: CommandContext<'project'>): Promise<number> {
  const { out, io } = context;
  const { sluice, project } = await chooseProject(context);
  const rows = await rowsOf(sluice, project);
  const lines = await Promise.all(
    rows.map(async ({ environment, image, state }) => {
      const { name, health, active_revision: revision } = environment;
      const cells: Cell[] = [
        { text: `${project.slug} · ${name}` },
        { text: health.state, paint: (text) => out.paint(healthColour(health), text) },
        { text: revision ?? '-' },
        { text: tagOf(image) },
        { text: ['serving', 'empty'].includes(state) ? '' : clean(state), paint: (text) => out.paint('yellow', text) },
        ...(await trafficNow(sluice, project, environment, io.now())).map((text): Cell => ({ text })),
      ];
      return cells;
    }),
  );
  for (const line of layOut(lines, { columns: out.columns, right: new Set([5, 6, 7]) })) out.line(line);
  const [last] = await take(sluice.deployments.list(project.id, { limit: 1 }), 1);
  const next =
    last && last.finished_at === null
      ? 'sluice deployments watch · sluice abort'
      : 'sluice deploy IMAGE · sluice logs -f';
  const what = last
    ? `last: ${last.revision} of ${last.environment} ${last.state} ${ago(last.finished_at ?? last.created_at, io.now())} · `
    : '';
  for (const line of fold(`${what}next: ${next}`, out.columns, 2)) out.note(line);
  return exit.done;
}

/** Requests a second, errors and latency of the last minutes; a token without `alerts:read` is not shown them. */
async function trafficNow(sluice: Sluice, project: Project, { name }: Environment, nowMs: number): Promise<string[]> {
  const from = new Date(nowMs - recentMs).toISOString();
  const measured = await sluice.metrics.get(project.id, { environment: name, from }).catch((error) => {
    if ((error as { status?: number }).status !== 403) throw error;
    return null;
  });
  const points = measured?.series.flatMap((series) => series.points) ?? [];
  const requests = points.reduce((sum, point) => sum + point.requests, 0);
  if (requests === 0) return ['', '', ''];
  const errors = points.reduce((sum, point) => sum + point.requests * (point.error_rate ?? 0), 0);
  const slowest = Math.max(...points.map(({ p95_ms }) => p95_ms ?? 0));
  const rate = (requests * 1000) / recentMs;
  return [
    `${rate < 10 ? rate.toFixed(1) : count(Math.round(rate))}/s`,
    `${percent(errors / requests)} errors`,
    `p95 ${milliseconds(slowest)}`,
  ];
}

const ownColours: Partial<Record<Instance['state'], Colour>> = {
  unhealthy: 'red',
  ended: 'red',
  draining: 'dim',
};

function stateOf({ state, ended }: Instance): string {
  if (!ended) return state;
  const code = ended.exit_code === null ? '' : `, exit code ${ended.exit_code}`;
  return `${state}: ${ended.reason}${code}`;
}

function checkOf({ last_check: check }: Instance): string {
  if (!check) return '-';
  return check.ok ? `ok: ${check.message}` : `failed: ${check.message}`;
}

export const ps: Command = {
  verbs: {
    '': verb({
      about: 'list instances of an environment: those that run, and those that ended by themselves',
      options: { ...inEnvironment, ...paged },
      async run(context) {
        const { sluice, project, environment } = await chooseEnvironment(context);
        const [{ health }, instances] = await Promise.all([
          sluice.environments.get(project.id, environment),
          takePaged(context, sluice.instances.list(project.id, environment)),
        ]);
        const wrong = healthLine(`${environment} of ${project.slug}`, health, context.out);
        if (wrong !== null && !context.out.json) context.out.line(`${wrong}\n`);
        context.out.list(
          instances,
          [
            { title: 'INSTANCE', of: ({ id }) => id, whole: true },
            { title: 'REV', of: ({ revision }) => revision },
            { title: 'STATE', of: stateOf, colour: ({ state }) => ownColours[state] ?? colourOf(state) },
            { title: 'RESTARTS', of: ({ restarts }) => restarts, right: true, optional: 1 },
            { title: 'STARTED', of: ({ started_at }) => context.out.time(started_at), optional: 3 },
            { title: 'ENDED', of: ({ ended }) => context.out.time(ended?.at ?? null), optional: 4 },
            { title: 'NODE', of: ({ node }) => node, optional: 5 },
            { title: 'LAST CHECK', of: checkOf },
          ],
          `Nothing runs in ${environment} of ${project.slug}. Deploy something: sluice deploy IMAGE`,
        );
        return exit.done;
      },
    }),
  },
  examples: ['sluice ps', 'sluice ps --env staging'],
};

const mostShown = 1000;

/** How many of its machines answer, and which do not. */
function hostsOf({ hosts }: Region): string {
  if (!hosts) return '-';
  const away = hosts.filter(({ available }) => !available).map(({ name }) => name);
  const count = `${hosts.length - away.length} of ${hosts.length}`;
  return away.length === 0 ? count : `${count}, away: ${away.join(' ')}`;
}

export const regions: Command = {
  verbs: {
    '': verb({
      about: 'list regions, and whether the engine of each answers',
      async run(context) {
        const sluice = await connect(context);
        context.out.list(
          await take(sluice.regions.list(), mostShown),
          [
            { title: 'NAME', of: ({ name }) => name },
            { title: 'ENGINE', of: ({ engine }) => engine },
            {
              title: 'STATE',
              of: ({ available }) => (available ? 'answers' : 'away'),
              colour: ({ available }) => (available ? 'green' : 'red'),
            },
            { title: 'HOSTS', of: hostsOf },
          ],
          'There is no region.',
        );
        return exit.done;
      },
    }),
  },
  notes: 'HOSTS: how many hosts of a region with several Docker hosts answer.',
  examples: ['sluice regions'],
};

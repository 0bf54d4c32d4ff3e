// sluice status, ps and regions: what runs, how well, and where.
import type { Sluice } from '../../client/index.ts';
import type { Region } from '../../client/types.ts';
import type { Environment } from '../../contract/environments.ts';
import type { Instance } from '../../contract/instances.ts';
import type { Project } from '../../contract/projects.ts';
import { chooseEnvironment, findProject, take, takePaged } from '../choose-target.ts';
import { connect } from '../connect.ts';
import { type Command, inEnvironment, inProject, paged, verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import { type Colour, colourOf, healthColour, healthLine } from '../terminal/output.ts';
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
      options: inProject,
      async run(context) {
        const sluice = await connect(context);
        const named = context.text('project') ?? (context.io.env.SLUICE_PROJECT || undefined);
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
            { title: 'PROJECT', of: ({ project }) => project.slug },
            { title: 'ENV', of: ({ environment }) => environment.name },
            {
              title: 'HEALTH',
              of: ({ environment }) => environment.health.state,
              colour: ({ environment }) => healthColour(environment.health),
            },
            { title: 'STATE', of: ({ state }) => state, colour: colourOfRow },
            { title: 'TRAFFIC', of: ({ environment }) => trafficOf(environment) },
            { title: 'IMAGE', of: ({ image }) => image },
            { title: 'URL', of: ({ environment }) => environment.url },
            ...(rows.some(isPending) ? [{ title: 'PENDING', of: pendingOf }] : []),
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
  examples: ['sluice status', 'sluice status --project shop'],
};

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
            { title: 'INSTANCE', of: ({ id }) => id },
            { title: 'REV', of: ({ revision }) => revision },
            { title: 'STATE', of: stateOf, colour: ({ state }) => ownColours[state] ?? colourOf(state) },
            { title: 'RESTARTS', of: ({ restarts }) => restarts, right: true },
            { title: 'STARTED', of: ({ started_at }) => context.out.time(started_at) },
            { title: 'ENDED', of: ({ ended }) => context.out.time(ended?.at ?? null) },
            { title: 'NODE', of: ({ node }) => node },
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

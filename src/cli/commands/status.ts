import type { Sluice } from '../../client/index.ts';
import type { Environment } from '../../contract/environments.ts';
import type { Project } from '../../contract/projects.ts';
import { type Command, inProject, verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import { findProject, take } from '../reach/choose.ts';
import { connect } from '../reach/connect.ts';
import { healthColour, healthLine } from '../terminal/health.ts';
import { colourOf } from '../terminal/output.ts';
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

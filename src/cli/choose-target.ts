// Which project, environment and deployment a command is about.
import type { Sluice } from '../client/index.ts';
import type { Deployment } from '../contract/deployments.ts';
import type { Project } from '../contract/projects.ts';
import { connect } from './connect.ts';
import type { CommandContext } from './frame/command.ts';
import { didYouMean } from './frame/suggest.ts';
import { CliError, exit, UsageError } from './io.ts';
import { findLink } from './link.ts';

const listed = 10;

export interface ProjectTarget {
  sluice: Sluice;
  project: Project;
}

interface EnvironmentTarget extends ProjectTarget {
  environment: string;
}

/** What names the project, if anything does: --project, SLUICE_PROJECT, or the link of the folder. */
export function namedProject({ io, text }: Pick<CommandContext<'project'>, 'io' | 'text'>): string | undefined {
  return text('project') ?? (io.env.SLUICE_PROJECT || undefined) ?? findLink(io)?.project;
}

/** The project that is named, or the only one there is. */
export async function chooseProject(context: CommandContext<'project'>): Promise<ProjectTarget> {
  const sluice = await connect(context as CommandContext);
  const named = namedProject(context);
  return { sluice, project: named === undefined ? await onlyProject(sluice) : await findProject(sluice, named) };
}

export async function findProject(sluice: Sluice, named: string): Promise<Project> {
  if (/^prj_[0-9a-z]{26}$/.test(named)) return sluice.projects.get(named);
  const known: string[] = [];
  const sameName: Project[] = [];
  for await (const project of sluice.projects.list()) {
    if (project.slug === named) return project;
    if (project.name.toLowerCase() === named.toLowerCase()) sameName.push(project);
    known.push(project.slug);
  }
  if (sameName.length === 1) return sameName[0]!;
  if (sameName.length > 1)
    throw new UsageError(`${sameName.length} projects have that name: ${sameName.map(({ slug }) => slug).join(', ')}`);
  const hint = didYouMean(named, known) || (known.length > 0 ? ` There are: ${some(known)}.` : '');
  throw new CliError(exit.notFound, `There is no project ${named}.${hint}`, 'See: sluice projects');
}

async function onlyProject(sluice: Sluice): Promise<Project> {
  const { data, page } = await sluice.projects.list({ limit: listed }).page();
  if (data.length === 1) return data[0]!;
  if (data.length === 0)
    throw new CliError(exit.notFound, 'There is no project yet.', 'Create one: sluice projects create "My shop"');
  const names = data.map(({ slug }) => slug);
  throw new UsageError(`Which project? Add --project: ${names.join(', ')}${page.has_more ? ', …' : ''}`);
}

const some = (names: string[]): string => names.slice(0, listed).join(', ') + (names.length > listed ? ', …' : '');

/** The environment of --env, or of the folder's link where its project is meant, or production, or the only one. */
export async function chooseEnvironment(
  context: CommandContext<'project' | 'env'>,
  named?: string,
): Promise<EnvironmentTarget> {
  const here = await chooseProject(context);
  const linked =
    named === undefined && context.text('env') === undefined ? linkedEnvironment(context, here.project) : undefined;
  return { ...here, environment: environmentOf(here.project, named ?? context.text('env') ?? linked) };
}

function linkedEnvironment({ io }: Pick<CommandContext<never>, 'io'>, { id, slug }: Project): string | undefined {
  const link = findLink(io);
  return link !== null && [id, slug].includes(link.project) ? (link.environment ?? undefined) : undefined;
}

export function environmentOf({ slug, environments }: Project, named: string | undefined): string {
  if (named !== undefined) {
    if (environments.includes(named)) return named;
    const hint = didYouMean(named, environments) || ` There are: ${environments.join(', ')}.`;
    throw new CliError(exit.notFound, `${slug} has no environment ${named}.${hint}`);
  }
  if (environments.includes('production')) return 'production';
  if (environments.length === 1) return environments[0]!;
  throw new UsageError(`Which environment? Add --env: ${environments.join(', ')}`);
}

interface DeploymentTarget extends ProjectTarget {
  deployment: Deployment;
}

/** The deployment that is named (see findDeployment), or the one in progress; where `orLatest`, else the latest. */
export async function chooseDeployment(
  context: CommandContext<'project' | 'env'>,
  id: string | undefined,
  orLatest = false,
): Promise<DeploymentTarget> {
  if (id !== undefined) return findDeployment(context, id);
  const { sluice, project, environment } = await chooseEnvironment(context);
  const { in_progress_deployment: running } = await sluice.environments.get(project.id, environment);
  if (running !== null) return { sluice, project, deployment: await sluice.deployments.get(project.id, running) };
  const { data } = await sluice.deployments.list(project.id, { environment, limit: 1 }).page();
  if (orLatest && data[0]) return { sluice, project, deployment: data[0] };
  throw new CliError(
    exit.notFound,
    `No deployment is in progress in ${project.slug} ${environment}.`,
    'Name one, or create one: sluice deployments, sluice deploy IMAGE',
  );
}

const looksAtDeployments = 1000;

/** By its id, by the beginning of an id, with or without `dpl_`, or by its revision: `r19` of the environment. */
async function findDeployment(context: CommandContext<'project' | 'env'>, named: string): Promise<DeploymentTarget> {
  if (revisionPattern.test(named)) {
    const { sluice, project, environment } = await chooseEnvironment(context);
    const revision = await sluice.revisions.get(project.id, environment, named);
    return { sluice, project, deployment: await sluice.deployments.get(project.id, revision.deployment_id) };
  }
  const here = await chooseProject(context);
  if (/^dpl_[0-9a-z]{26}$/.test(named))
    return { ...here, deployment: await here.sluice.deployments.get(here.project.id, named) };
  const begin = `dpl_${named.replace(/^dpl_/, '')}`;
  if (!/^dpl_[0-9a-z]{1,25}$/.test(begin))
    throw new UsageError(`${named} is neither a deployment's id, nor the beginning of one, nor a revision such as r7.`);
  const found: Deployment[] = [];
  let looked = 0;
  for await (const deployment of here.sluice.deployments.list(here.project.id)) {
    if (deployment.id.startsWith(begin)) found.push(deployment);
    // Newest first, and ids sort by time.
    else if (deployment.id < begin || ++looked >= looksAtDeployments) break;
  }
  if (found.length === 1) return { ...here, deployment: found[0]! };
  if (found.length > 1)
    throw new UsageError(`${found.length} deployments begin with ${named}: ${some(found.map(({ id }) => id))}`);
  throw new CliError(
    exit.notFound,
    `${here.project.slug} has no deployment that begins with ${named}.`,
    'See: sluice deployments',
  );
}

export const revisionPattern = /^r[1-9]\d{0,9}$/;

/** The first items of a list, at most `limit`. */
export async function take<T>(items: AsyncIterable<T>, limit: number): Promise<T[]> {
  const taken: T[] = [];
  for await (const item of items) {
    if (taken.push(item) >= limit) break;
  }
  return taken;
}

const usualLimit = 20;

/** As many as --limit says; a note says where there are more. */
export async function takePaged<T>(context: CommandContext<'limit'>, items: AsyncIterable<T>): Promise<T[]> {
  const limit = context.whole('limit', 1, 10_000) ?? usualLimit;
  const taken = await take(items, limit + 1);
  if (taken.length > limit) context.out.note(`There are more than ${limit}: --limit ${Math.min(10_000, limit * 5)}`);
  return taken.slice(0, limit);
}

// sluice environments …: looking at environments and making, locking and deleting them. Changing settings and variables
// is environment-settings.ts.
import type { Environment } from '../../contract/environments.ts';
import { type Command, inEnvironment, inProject, verb } from '../frame/command.ts';
import { confirmFirst } from '../frame/confirm-first.ts';
import { exit } from '../io.ts';
import { chooseEnvironment, chooseProject, environmentOf, take } from '../reach/choose.ts';
import { healthColour } from '../terminal/health.ts';
import { pairs } from '../terminal/table.ts';
import { clean } from '../terminal/width.ts';
import { pendingText, setVerb, unsetVerb, variablesVerb } from './environment-settings.ts';

export const trafficOf = ({ traffic }: Environment): string =>
  traffic.map(({ revision, percent }) => `${revision} ${percent} %`).join(', ') || '-';

function environmentLines(environment: Environment): string[] {
  const { health_check: health, canary, locked } = environment;
  const flat = (values: object) =>
    Object.entries(values)
      .map(([name, value]) => `${name}=${Array.isArray(value) ? value.join(',') : value}`)
      .join(' ');
  return pairs([
    ['name', environment.name],
    ['url', environment.url],
    ['region', environment.region],
    ['health', healthText(environment.health)],
    ['traffic', trafficOf(environment)],
    ['in progress', environment.in_progress_deployment ?? '-'],
    ['replicas', String(environment.replicas)],
    ['port', String(environment.port)],
    ['variables', environment.variables.join(', ') || '-'],
    ['health_check', flat(health)],
    ['resources', flat(environment.resources)],
    ['canary', flat(canary)],
    ['auto_rollback', String(environment.auto_rollback)],
    ['retention', String(environment.retention)],
    ['drain_s', String(environment.drain_s)],
    ['pending', pendingText(environment) || '-'],
    ['locked', locked ? `${clean(locked.reason)} (since ${locked.at})` : 'no'],
  ]);
}

const healthText = ({ state, since, reason }: Environment['health']): string =>
  `${state} (since ${since})${reason === null ? '' : `: ${clean(reason)}`}`;

export const environments: Command = {
  verbs: {
    list: verb({
      about: 'list environments of a project',
      options: inProject,
      async run(context) {
        const { sluice, project } = await chooseProject(context);
        context.out.list(
          await take(sluice.environments.list(project.id), 1000),
          [
            { title: 'NAME', of: ({ name }) => name },
            { title: 'HEALTH', of: ({ health }) => health.state, colour: ({ health }) => healthColour(health) },
            { title: 'TRAFFIC', of: trafficOf },
            { title: 'REPLICAS', of: ({ replicas }) => replicas, right: true },
            {
              title: 'LOCKED',
              of: ({ locked }) => locked?.reason ?? 'no',
              colour: (e) => (e.locked ? 'red' : undefined),
            },
            { title: 'URL', of: ({ url }) => url },
          ],
          'There is no environment. Create one: sluice environments create staging',
        );
        return exit.done;
      },
    }),
    show: verb({
      about: 'show an environment with its settings',
      args: '[NAME]',
      options: inEnvironment,
      async run(context) {
        const { sluice, project, environment } = await chooseEnvironment(context, context.args[0]);
        const shown = await sluice.environments.get(project.id, environment);
        context.out.result(shown, () => {
          for (const line of environmentLines(shown)) context.out.line(line);
        });
        return exit.done;
      },
    }),
    create: verb({
      about: 'create an environment',
      args: 'NAME',
      options: { ...inProject, region: { type: 'string', value: 'R', about: 'where it runs' } },
      async run(context) {
        const { sluice, project } = await chooseProject(context);
        const region = context.text('region');
        const made = await sluice.environments.create(project.id, {
          name: context.args[0]!,
          ...(region && { region }),
        });
        context.out.result(made, () => context.out.line(`${made.name}  ${made.url}`));
        return exit.done;
      },
    }),
    set: setVerb,
    variables: variablesVerb,
    unset: unsetVerb,
    lock: verb({
      about: 'keep everybody from deploying there',
      args: 'REASON',
      options: inEnvironment,
      async run(context) {
        const { sluice, project, environment } = await chooseEnvironment(context);
        const changed = await sluice.environments.update(project.id, environment, {
          locked: { reason: context.args[0]! },
        });
        context.out.result(changed, () => context.out.line(`${environment} is locked`));
        return exit.done;
      },
    }),
    unlock: verb({
      about: 'let people deploy there again',
      options: inEnvironment,
      async run(context) {
        const { sluice, project, environment } = await chooseEnvironment(context);
        const changed = await sluice.environments.update(project.id, environment, { locked: null });
        context.out.result(changed, () => context.out.line(`${environment} is unlocked`));
        return exit.done;
      },
    }),
    delete: verb({
      about: 'delete an environment and what runs in it',
      args: 'NAME',
      options: { ...inProject, yes: { type: 'boolean', short: 'y', about: 'do not ask' } },
      async run(context) {
        const { sluice, project } = await chooseProject(context);
        const environment = environmentOf(project, context.args[0]);
        await confirmFirst(context, `Delete ${environment} of ${project.slug} and all that runs there?`);
        await sluice.environments.delete(project.id, environment);
        context.out.result({ name: environment, deleted: true }, () => context.out.line(`${environment} is deleted`));
        return exit.done;
      },
    }),
  },
  fallback: 'list',
  notes:
    'Settings of set: replicas, port, auto_rollback, retention, drain_s, and those of health_check,\nresources and canary with a dot, as in canary.bake_s=30 or canary.steps=25,50. null empties one.\nport, health_check, resources and variables apply with the next deployment, or with sluice redeploy.',
  examples: [
    'sluice environments',
    'sluice env set replicas=3 canary.bake_s=30 --env production',
    'sluice env set resources.memory_mb=1024 resources.cpus=0.5',
    'sluice env variables GREETING=hello MODE=fast',
    'sluice env variables DATABASE_URL < url.txt',
    'sluice env lock "moving the database"',
  ],
};

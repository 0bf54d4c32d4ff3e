// sluice environments …: lists, shows, creates, locks and deletes environments, and changes their settings and variables.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Environment, EnvironmentChanges } from '../../contract/environments.ts';
import { chooseEnvironment, chooseProject, environmentOf, take } from '../choose-target.ts';
import { settingNames } from '../frame/choices.ts';
import { type Command, type CommandContext, inEnvironment, inProject, verb } from '../frame/command.ts';
import { didYouMean } from '../frame/suggest.ts';
import { exit, UsageError } from '../io.ts';
import { healthColour } from '../terminal/output.ts';
import { confirmFirst, prompt, readStdin } from '../terminal/prompt.ts';
import { clean, pairs } from '../terminal/table.ts';

const groups = ['health_check', 'resources', 'canary'] as const;

function splitPair(word: string): [string, string] {
  const at = word.indexOf('=');
  if (at < 1) throw new UsageError(`${word} is not NAME=VALUE.`);
  return [word.slice(0, at), word.slice(at + 1)];
}

function readValue(name: string, text: string): unknown {
  if (text === 'null') return null;
  if (text === 'true' || text === 'false') return text === 'true';
  if (name === 'canary.steps') return text === '' ? [] : text.split(',').map(Number);
  return text !== '' && Number.isFinite(Number(text)) ? Number(text) : text;
}

/** From `NAME=VALUE` words to the body of a PATCH. The service checks the values. */
export function settingsOf(words: string[]): EnvironmentChanges {
  const changes: Record<string, unknown> = {};
  for (const [name, text] of words.map(splitPair)) {
    if (!settingNames.includes(name))
      throw new UsageError(
        `There is no setting ${name}.${didYouMean(name, settingNames) || ` There are: ${settingNames.join(', ')}.`}`,
      );
    const [group, inner] = name.split('.') as [string, string | undefined];
    const value = readValue(name, text);
    changes[group] = inner === undefined ? value : { ...(changes[group] as object), [inner]: value };
  }
  return changes as EnvironmentChanges;
}

/** What has been changed and does not hold yet. */
function pendingText({ pending_changes: pending }: Environment): string {
  const names = pending.map(({ field, from, to }) =>
    field.startsWith('variables.') ? field : `${field} ${from ?? 'none'} → ${to ?? 'none'}`,
  );
  return clean(names.join(', '));
}

function notePending({ out }: Pick<CommandContext<never>, 'out'>, environment: Environment): void {
  const count = environment.pending_changes.length;
  if (count === 0) return;
  const changes = count === 1 ? '1 change applies' : `${count} changes apply`;
  out.note(`${changes} with the next deployment (now: sluice redeploy): ${pendingText(environment)}`);
}

const setVerb = verb({
  about: 'change settings',
  args: 'SETTING=VALUE…',
  options: inEnvironment,
  async run(context) {
    const changes = settingsOf(context.args);
    const { sluice, project, environment } = await chooseEnvironment(context);
    const changed = await sluice.environments.update(project.id, environment, changes);
    context.out.result(changed, () => {
      for (const word of context.args)
        context.out.line(`${splitPair(word)[0]} = ${settingOf(changed, splitPair(word)[0])}`);
      notePending(context, changed);
    });
    return exit.done;
  },
});

function settingOf(environment: Environment, name: string): string {
  const group = groups.find((each) => name.startsWith(`${each}.`));
  const holder = (group ? environment[group] : environment) as Record<string, unknown>;
  const value = holder[group ? name.slice(group.length + 1) : name];
  return Array.isArray(value) ? value.join(',') : String(value);
}

const variablesVerb = verb({
  about:
    'list variables, or set them; the value of a NAME alone is asked for and not shown, or read from standard input',
  args: '[NAME=VALUE…]',
  options: {
    ...inEnvironment,
    file: { type: 'string', multiple: true, value: 'NAME=PATH', about: 'set a variable to what a file holds' },
  },
  async run(context) {
    const bare = context.args.filter((word) => !word.includes('='));
    if (bare.length > 1 && !context.io.stdin.isTTY)
      throw new UsageError('Standard input holds the value of one variable.');
    const fromFiles = context
      .texts('file')
      .map(splitPair)
      .map(([name, path]) => [name, readText(context, path)] as [string, string]);
    const { sluice, project, environment } = await chooseEnvironment(context);
    if (context.args.length === 0 && fromFiles.length === 0) {
      const { variables } = await sluice.environments.get(project.id, environment);
      context.out.list(variables, [{ title: 'NAME', of: (name) => name }], `${environment} has no variables.`);
      return exit.done;
    }
    const given = context.args.filter((word) => word.includes('=')).map(splitPair);
    given.push(...fromFiles);
    for (const name of bare) {
      const asked = `${name} (not shown): `;
      given.push([name, context.io.stdin.isTTY ? await prompt(context.io, asked, true) : await readStdin(context.io)]);
    }
    const changed = await sluice.environments.update(project.id, environment, { variables: Object.fromEntries(given) });
    context.out.result(changed, () => {
      context.out.line(`${given.map(([name]) => name).join(', ')} set for the next revision of ${environment}`);
      notePending(context, changed);
    });
    return exit.done;
  },
});

/** Without the line end that editors leave. */
function readText({ io }: Pick<CommandContext, 'io'>, path: string): string {
  try {
    return readFileSync(resolve(io.cwd, path), 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

const unsetVerb = verb({
  about: 'remove variables',
  args: 'NAME…',
  options: inEnvironment,
  async run(context) {
    const { sluice, project, environment } = await chooseEnvironment(context);
    const variables = Object.fromEntries(context.args.map((name) => [name, null]));
    const changed = await sluice.environments.update(project.id, environment, { variables });
    context.out.result(changed, () => {
      context.out.line(`${context.args.join(', ')} removed for the next revision of ${environment}`);
      notePending(context, changed);
    });
    return exit.done;
  },
});

export const trafficOf = ({ traffic }: Environment): string =>
  traffic.map(({ revision, percent }) => `${revision} ${percent} %`).join(', ') || '-';

function environmentLines(environment: Environment, columns: number | null): string[] {
  const { health_check: health, canary, locked } = environment;
  const flat = (values: object) =>
    Object.entries(values)
      .map(([name, value]) => `${name}=${Array.isArray(value) ? value.join(',') : value}`)
      .join(' ');
  return pairs(
    [
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
    ],
    columns,
  );
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
            { title: 'REPLICAS', of: ({ replicas }) => replicas, right: true, optional: 2 },
            {
              title: 'LOCKED',
              optional: 1,
              of: ({ locked }) => locked?.reason ?? 'no',
              colour: (e) => (e.locked ? 'red' : undefined),
            },
            { title: 'URL', of: ({ url }) => url, whole: true },
          ],
          'There is no environment. Create one: sluice environments create staging',
        );
        return exit.done;
      },
    }),
    show: verb({
      about: 'show an environment with its settings',
      args: '[ENVIRONMENT]',
      options: inEnvironment,
      async run(context) {
        const { sluice, project, environment } = await chooseEnvironment(context, context.args[0]);
        const shown = await sluice.environments.get(project.id, environment);
        context.out.result(shown, () => {
          for (const line of environmentLines(shown, context.out.columns)) context.out.line(line);
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
      about: 'lock it: deployments are refused',
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
      about: 'unlock it',
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
      args: 'ENVIRONMENT',
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
    'sluice env variables DATABASE_URL                  # asks, and shows nothing',
    'sluice env variables --file TLS_KEY=key.pem',
    'sluice env lock "moving the database"',
  ],
};

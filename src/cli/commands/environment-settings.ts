// sluice environments set | variables | unset: from words to the body of a PATCH.
import type { Environment, EnvironmentChanges } from '../../contract/environments.ts';
import { settingNames } from '../frame/choices.ts';
import { type CommandContext, inEnvironment, verb } from '../frame/command.ts';
import { didYouMean } from '../frame/suggest.ts';
import { exit, UsageError } from '../io.ts';
import { chooseEnvironment } from '../reach/choose.ts';
import { readStdin } from '../terminal/prompt.ts';
import { clean } from '../terminal/width.ts';

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

/** Values are not checked here: the service does. */
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
export function pendingText({ pending_changes: pending }: Environment): string {
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

export const setVerb = verb({
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

export const variablesVerb = verb({
  about: 'list variables, or set them; the value of a NAME alone is read from standard input',
  args: '[NAME=VALUE…]',
  options: inEnvironment,
  async run(context) {
    const bare = context.args.filter((word) => !word.includes('='));
    if (bare.length > 1) throw new UsageError('Standard input holds the value of one variable.');
    const { sluice, project, environment } = await chooseEnvironment(context);
    if (context.args.length === 0) {
      const { variables } = await sluice.environments.get(project.id, environment);
      context.out.list(variables, [{ title: 'NAME', of: (name) => name }], `${environment} has no variables.`);
      return exit.done;
    }
    const given = context.args.filter((word) => word.includes('=')).map(splitPair);
    for (const name of bare) given.push([name, await readStdin(context.io)]);
    const changed = await sluice.environments.update(project.id, environment, { variables: Object.fromEntries(given) });
    context.out.result(changed, () => {
      context.out.line(`${given.map(([name]) => name).join(', ')} set for the next revision of ${environment}`);
      notePending(context, changed);
    });
    return exit.done;
  },
});

export const unsetVerb = verb({
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

// What the commands that roll an image out have in common: their options, what these mean to the service, and what is said
// of the deployment.
import type { Deployment, Strategy } from '../../contract/deployments.ts';
import { strategies } from '../frame/choices.ts';
import type { CommandContext } from '../frame/command.ts';
import { exit, UsageError } from '../io.ts';
import type { chooseEnvironment } from './choose.ts';
import { watch } from './watch.ts';

export const rolloutOptions = {
  canary: {
    type: 'string',
    value: 'PERCENT',
    about: 'initial traffic (%); all traffic follows if the canary does well',
  },
  strategy: { type: 'string', value: 'S', choices: strategies, about: 'how traffic moves (default: rolling)' },
  note: { type: 'string', value: 'TEXT', about: 'for people' },
  wait: { type: 'boolean', short: 'w', about: 'watch it; exit code 0 only if it succeeded' },
} as const;

export function rolloutChoices(context: CommandContext<'canary' | 'strategy' | 'note'>) {
  const canary = context.whole('canary', 1, 99);
  const strategy = context.text('strategy') as Strategy | undefined;
  if (canary !== undefined && strategy !== undefined && strategy !== 'canary')
    throw new UsageError(`--canary does not go with --strategy ${strategy}.`);
  const chosen = canary === undefined ? strategy : 'canary';
  const note = context.text('note');
  return {
    ...(chosen && { strategy: chosen }),
    ...(canary !== undefined && { canary_percent: canary }),
    ...(note !== undefined && { note }),
  };
}

/** Gives the exit code. */
export async function reportRollout(
  context: CommandContext<'wait'>,
  { sluice, project, environment }: Awaited<ReturnType<typeof chooseEnvironment>>,
  deployment: Deployment,
): Promise<number> {
  const { id, revision, image } = deployment;
  const line = `${image} becomes ${revision} of ${project.slug} ${environment}`;
  if (context.flag('wait')) {
    context.out.note(`${id}: ${line}`);
    return watch(context, sluice, deployment);
  }
  context.out.result(deployment, () => {
    context.out.line(`${id}  ${line}`);
    context.out.note(`Watch it: sluice deployments watch ${id} --project ${project.slug}`);
  });
  return exit.done;
}

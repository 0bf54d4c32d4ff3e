// sluice deploy, redeploy, rollback, and promote, pause, resume, abort: the commands that start a rollout or change one
// under way.
import type { Deployment, Strategy } from '../../contract/deployments.ts';
import { chooseDeployment, chooseEnvironment } from '../choose-target.ts';
import { strategies } from '../frame/choices.ts';
import { type Command, type CommandContext, inEnvironment, verb } from '../frame/command.ts';
import { exit, UsageError } from '../io.ts';
import { watch } from './watch-deployment.ts';

const rolloutOptions = {
  canary: {
    type: 'string',
    value: 'PERCENT',
    about: 'initial traffic (%); all traffic follows if the canary does well',
  },
  strategy: { type: 'string', value: 'S', choices: strategies, about: 'how traffic moves (default: rolling)' },
  note: { type: 'string', value: 'TEXT', about: 'for people' },
  wait: { type: 'boolean', short: 'w', about: 'watch it; exit code 0 only if it succeeded' },
} as const;

function rolloutChoices(context: CommandContext<'canary' | 'strategy' | 'note'>) {
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

/** Prints the deployment or, with --wait, watches it; gives the exit code. */
async function reportRollout(
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

export const deploy: Command = {
  verbs: {
    '': verb({
      about: 'deploy an image',
      args: 'IMAGE',
      options: {
        ...inEnvironment,
        ...rolloutOptions,
      },
      async run(context) {
        const choices = rolloutChoices(context);
        const { sluice, project, environment } = await chooseEnvironment(context);
        const deployment = await sluice.deployments.create(project.id, {
          environment,
          image: context.args[0]!,
          ...choices,
        });
        return reportRollout(context, { sluice, project, environment }, deployment);
      },
    }),
  },
  notes:
    'With --wait, Ctrl-C stops watching; the deployment continues. Exit code 1: it failed, and\nthe previous revision still serves.',
  examples: [
    'sluice deploy registry.example/shop:1.4 --wait',
    'sluice deploy registry.example/shop:1.5 --canary 10 --wait',
    'sluice deploy registry.example/shop:1.5 -p shop -e staging --strategy blue_green',
  ],
};

export const redeploy: Command = {
  verbs: {
    '': verb({
      about: 'deploy the live image again, by its digest, with the current settings and variables',
      options: { ...inEnvironment, ...rolloutOptions },
      async run(context) {
        const choices = rolloutChoices(context);
        const { sluice, project, environment } = await chooseEnvironment(context);
        const deployment = await sluice.environments.redeploy(project.id, environment, choices);
        return reportRollout(context, { sluice, project, environment }, deployment);
      },
    }),
  },
  notes:
    'port, variables, health_check and resources are part of a revision: what was changed applies with\nthe next deployment, or with this. `sluice environments show` says what was changed.',
  examples: ['sluice redeploy --wait', 'sluice redeploy --canary 10 --note "more memory" --wait'],
};

export const rollback: Command = {
  verbs: {
    '': verb({
      about: 'restore image, variables and settings of an earlier revision (default: the last one that was replaced)',
      args: '[REVISION]',
      options: {
        ...inEnvironment,
        reason: { type: 'string', value: 'TEXT', about: 'for people' },
        wait: { type: 'boolean', short: 'w', about: 'watch it; exit code 0 only if it succeeded' },
      },
      async run(context) {
        const [revision] = context.args;
        if (revision !== undefined && !/^r[1-9]\d*$/.test(revision))
          throw new UsageError(`${revision} is not a revision such as r7.`);
        const { sluice, project, environment } = await chooseEnvironment(context);
        const deployment = await sluice.environments.rollback(project.id, environment, {
          ...(revision && { revision }),
          ...(context.text('reason') !== undefined && { reason: context.text('reason')! }),
        });
        if (context.flag('wait')) return watch(context, sluice, deployment);
        context.out.result(deployment, () => {
          context.out.line(
            `${deployment.id}  ${deployment.image} comes back as ${deployment.revision} of ${environment}`,
          );
        });
        return exit.done;
      },
    }),
  },
  examples: ['sluice rollback --wait', 'sluice rollback r7 --reason "checkout is slow" --wait'],
};

type Step = 'promote' | 'pause' | 'resume' | 'abort';

/** These commands differ only in the operation of the API they call. */
function rolloutCommand(step: Step, about: string): Command {
  return {
    verbs: {
      '': verb({
        about: `${about} (default: the deployment in progress)`,
        args: '[DEPLOYMENT]',
        options: {
          ...inEnvironment,
          wait: { type: 'boolean', short: 'w', about: 'watch it to its end; exit code 0 only if it succeeded' },
        },
        async run(context) {
          const { sluice, project, deployment } = await chooseDeployment(context, context.args[0]);
          const after = await sluice.deployments[step](project.id, deployment.id);
          if (context.flag('wait')) return watch(context, sluice, after);
          const share = after.canary ? `, ${after.canary.phase} at ${after.canary.percent} %` : '';
          context.out.result(after, () => context.out.line(`${after.id}  ${after.revision} is ${after.state}${share}`));
          return exit.done;
        },
      }),
    },
    examples: [`sluice ${step}`, `sluice ${step} dpl_01k9xw3v5qfk2t8m7c4b6d9e0h --project shop`],
  };
}

export const promote = rolloutCommand('promote', 'promote a canary to its next step, or to all traffic');
export const pause = rolloutCommand('pause', 'pause a canary at its current traffic');
export const resume = rolloutCommand('resume', 'resume a paused canary; its step begins anew');
export const abort = rolloutCommand('abort', 'abort a deployment; the previous revision serves all traffic');

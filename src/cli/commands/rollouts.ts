// sluice deploy, redeploy, rollback, and promote, pause, resume, abort: the commands that start a rollout or change one
// under way.
import type { Deployment, Pull, Strategy } from '../../contract/deployments.ts';
import { usualPull } from '../../contract/references.ts';
import { chooseDeployment, chooseEnvironment, revisionPattern, take } from '../choose-target.ts';
import { pulls, strategies } from '../frame/choices.ts';
import { type Command, type CommandContext, inEnvironment, verb } from '../frame/command.ts';
import { exit, UsageError } from '../io.ts';
import { confirmFirst } from '../terminal/prompt.ts';
import { clean } from '../terminal/table.ts';
import { changeText, tagOf } from './diff.ts';
import { watch } from './watch-deployment.ts';

const waiting = {
  detach: { type: 'boolean', short: 'd', about: 'do not wait for the end' },
  wait: { type: 'boolean', short: 'w', about: 'wait for the end, which is the default' },
} as const;

const rolloutOptions = {
  canary: {
    type: 'string',
    value: 'PERCENT',
    about: 'initial traffic (%); all traffic follows if the canary does well',
  },
  strategy: { type: 'string', value: 'S', choices: strategies, about: 'how traffic moves (default: rolling)' },
  note: { type: 'string', value: 'TEXT', about: 'for people' },
  ...waiting,
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

/** Watches the deployment or, with --detach, prints it; gives the exit code. */
async function reportRollout(
  context: CommandContext<'detach'>,
  { sluice, project, environment }: Awaited<ReturnType<typeof chooseEnvironment>>,
  deployment: Deployment,
): Promise<number> {
  const { id, revision, image } = deployment;
  const line = `${clean(image)} becomes ${revision} of ${project.slug} · ${environment}`;
  if (!context.flag('detach')) {
    context.out.note(line);
    return watch(context, sluice, deployment);
  }
  context.out.result(deployment, () => {
    context.out.line(`${id}  ${line}`);
    context.out.note(`Watch it: sluice deployments watch ${revision} --project ${project.slug} --env ${environment}`);
  });
  return exit.done;
}

/** Said here, where the word is in sight. What a reference may be made of, the service says. */
function imageOf(word: string): string {
  const at = word.search(/\s/);
  if (at < 0) return word;
  throw new UsageError(
    `IMAGE is not an image reference: a blank at position ${at + 1}, for example registry.example/shop:2.0`,
  );
}

export const deploy: Command = {
  verbs: {
    '': verb({
      about: 'deploy an image, and watch it until it serves or has failed',
      args: 'IMAGE',
      options: {
        ...inEnvironment,
        pull: {
          type: 'string',
          value: 'WHEN',
          choices: pulls,
          about: 'missing: use an image that Docker has as it is (default for a name without a registry, such as shop)',
        },
        ...rolloutOptions,
      },
      async run(context) {
        const choices = rolloutChoices(context);
        const image = imageOf(context.args[0]!);
        const pull = (context.text('pull') as Pull | undefined) ?? usualPull(image);
        const { sluice, project, environment } = await chooseEnvironment(context);
        const deployment = await sluice.deployments.create(project.id, {
          environment,
          image,
          ...(pull && { pull }),
          ...choices,
        });
        return reportRollout(context, { sluice, project, environment }, deployment);
      },
    }),
  },
  notes:
    'It waits for the end: exit code 0 if the deployment succeeded, 1 if it failed and the previous\nrevision still serves. Ctrl-C stops watching; the deployment continues.',
  examples: [
    'docker build -t shop . && sluice deploy shop',
    'sluice deploy registry.example/shop:1.4',
    'sluice deploy registry.example/shop:1.5 --canary 10',
    'sluice deploy registry.example/shop:1.5 -p shop -e staging --strategy blue_green --detach',
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
  examples: ['sluice redeploy', 'sluice redeploy --canary 10 --note "more memory"'],
};

export const rollback: Command = {
  verbs: {
    '': verb({
      about: 'restore image, variables and settings of an earlier revision (default: the last one that was replaced)',
      args: '[REVISION]',
      options: {
        ...inEnvironment,
        reason: { type: 'string', value: 'TEXT', about: 'for people' },
        ...waiting,
        yes: { type: 'boolean', short: 'y', about: 'do not ask' },
      },
      async run(context) {
        const [revision] = context.args;
        if (revision !== undefined && !revisionPattern.test(revision))
          throw new UsageError(`${revision} is not a revision such as r7.`);
        const { sluice, project, environment } = await chooseEnvironment(context);
        await showRollback(context, { sluice, project, environment }, revision);
        // In a script nobody is there to say no, and in an incident nothing should be in the way.
        if (context.io.stdin.isTTY) await confirmFirst(context, `Roll ${environment} of ${project.slug} back?`);
        const deployment = await sluice.environments.rollback(project.id, environment, {
          ...(revision && { revision }),
          ...(context.text('reason') !== undefined && { reason: context.text('reason')! }),
        });
        if (!context.flag('detach')) return watch(context, sluice, deployment);
        context.out.result(deployment, () => {
          context.out.line(
            `${deployment.id}  ${clean(deployment.image)} comes back as ${deployment.revision} of ${environment}`,
          );
        });
        return exit.done;
      },
    }),
  },
  notes: 'It first shows what is restored, and asks on a terminal; --yes answers. In a script it does not ask.',
  examples: ['sluice rollback', 'sluice rollback r7 --reason "checkout is slow" --yes'],
};

/** `r15 → r14 (2.1.0 → 2.0.1, variables: − CHECKOUT_V2)`; nothing where the token may not read, or there is nothing. */
async function showRollback(
  { out }: Pick<CommandContext, 'out'>,
  { sluice, project, environment }: Awaited<ReturnType<typeof chooseEnvironment>>,
  named: string | undefined,
): Promise<void> {
  const recent = await readable(() => take(sluice.revisions.list(project.id, environment), 200));
  const live = recent?.find(({ state }) => state === 'active');
  const target = named ?? recent?.find(({ state }) => state === 'superseded')?.id;
  if (live === undefined || target === undefined || target === live.id) return;
  const compared = await readable(() => sluice.revisions.compare(project.id, environment, target, { from: live.id }));
  if (compared === null) return;
  const image = compared.changes.find(({ field }) => field === 'image');
  const others = compared.changes.filter((change) => change !== image).map(changeText);
  const what = [...(image ? [`${tagOf(image.from)} → ${tagOf(image.to)}`] : ['the same image']), ...others];
  out.note(`${live.id} → ${target}  (${what.join(', ')})`);
}

/** A token that may roll back need not be one that may read; what is wrong otherwise, the rollback itself says better. */
const readable = <T>(read: () => Promise<T>): Promise<T | null> =>
  read().catch((error) => {
    if ((error as { status?: number }).status === undefined) throw error;
    return null;
  });

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
    examples: [`sluice ${step}`, `sluice ${step} r19 --project shop`],
  };
}

export const promote = rolloutCommand('promote', 'promote a canary to its next step, or to all traffic');
export const pause = rolloutCommand('pause', 'pause a canary at its current traffic');
export const resume = rolloutCommand('resume', 'resume a paused canary; its step begins anew');
export const abort = rolloutCommand('abort', 'abort a deployment; the previous revision serves all traffic');

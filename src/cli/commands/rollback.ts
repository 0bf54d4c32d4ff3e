import { type Command, inEnvironment, verb } from '../frame/command.ts';
import { exit, UsageError } from '../io.ts';
import { chooseEnvironment } from '../reach/choose.ts';
import { watch } from '../reach/watch.ts';

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

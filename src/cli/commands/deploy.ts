import { type Command, inEnvironment, verb } from '../frame/command.ts';
import { chooseEnvironment } from '../reach/choose.ts';
import { reportRollout, rolloutChoices, rolloutOptions } from '../reach/rollout.ts';

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
    'With --wait, Ctrl-C stops watching; the deployment goes on. Exit code 1: it failed, and\nthe previous revision still serves.',
  examples: [
    'sluice deploy registry.example/shop:1.4 --wait',
    'sluice deploy registry.example/shop:1.5 --canary 10 --wait',
    'sluice deploy registry.example/shop:1.5 -p shop -e staging --strategy blue_green',
  ],
};

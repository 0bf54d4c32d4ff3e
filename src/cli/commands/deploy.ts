import type { Strategy } from '../../contract/deployments.ts';
import { strategies } from '../frame/choices.ts';
import { type Command, inEnvironment, verb } from '../frame/command.ts';
import { exit, UsageError } from '../io.ts';
import { chooseEnvironment } from '../reach/choose.ts';
import { watch } from '../reach/watch.ts';

export const command: Command = {
  verbs: {
    '': verb({
      about: 'deploy an image',
      args: 'IMAGE',
      options: {
        ...inEnvironment,
        canary: {
          type: 'string',
          value: 'PERCENT',
          about: 'initial traffic (%); all traffic follows if the canary does well',
        },
        strategy: { type: 'string', value: 'S', choices: strategies, about: 'how traffic moves (default: rolling)' },
        note: { type: 'string', value: 'TEXT', about: 'for people' },
        wait: { type: 'boolean', short: 'w', about: 'watch it; exit code 0 only if it succeeded' },
      },
      async run(context) {
        const canary = context.whole('canary', 1, 99);
        const strategy = context.text('strategy') as Strategy | undefined;
        if (canary !== undefined && strategy !== undefined && strategy !== 'canary')
          throw new UsageError(`--canary does not go with --strategy ${strategy}.`);
        const { sluice, project, environment } = await chooseEnvironment(context);
        const chosen = canary === undefined ? strategy : 'canary';
        const deployment = await sluice.deployments.create(project.id, {
          environment,
          image: context.args[0]!,
          ...(chosen && { strategy: chosen }),
          ...(canary !== undefined && { canary_percent: canary }),
          ...(context.text('note') !== undefined && { note: context.text('note')! }),
        });
        const { id, revision, image } = deployment;
        if (context.flag('wait')) {
          context.out.note(`${id}: ${image} becomes ${revision} of ${project.slug} ${environment}`);
          return watch(context, sluice, deployment);
        }
        context.out.result(deployment, () => {
          context.out.line(`${id}  ${image} becomes ${revision} of ${project.slug} ${environment}`);
          context.out.note(`Watch it: sluice deployments watch ${id} --project ${project.slug}`);
        });
        return exit.done;
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

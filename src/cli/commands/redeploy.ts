import { type Command, inEnvironment, verb } from '../frame/command.ts';
import { chooseEnvironment } from '../reach/choose.ts';
import { reportRollout, rolloutChoices, rolloutOptions } from '../reach/rollout.ts';

export const redeploy: Command = {
  verbs: {
    '': verb({
      about: 'roll the live image out again, by its digest, with the present settings and variables',
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

import { type Command, inEnvironment, paged, verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import { chooseEnvironment, takePaged } from '../reach/choose.ts';
import { colourOf } from '../terminal/output.ts';

export const revisions: Command = {
  verbs: {
    '': verb({
      about: 'list revisions of an environment, and which of them can be rolled back to',
      options: { ...inEnvironment, ...paged },
      async run(context) {
        const { sluice, project, environment } = await chooseEnvironment(context);
        context.out.list(
          await takePaged(context, sluice.revisions.list(project.id, environment)),
          [
            { title: 'REV', of: ({ id }) => id },
            { title: 'STATE', of: ({ state }) => state, colour: ({ state }) => colourOf(state) },
            { title: 'TRAFFIC', of: (r) => (r.traffic_percent > 0 ? `${r.traffic_percent} %` : '-'), right: true },
            { title: 'ROLLBACK', of: (r) => (r.rollback_eligible ? 'yes' : (r.ineligible_reason ?? 'no')) },
            { title: 'IMAGE', of: ({ image }) => image },
            { title: 'CREATED', of: ({ created_at }) => context.out.time(created_at) },
          ],
          `${environment} of ${project.slug} has no revision yet. Deploy one: sluice deploy IMAGE`,
        );
        return exit.done;
      },
    }),
  },
  examples: ['sluice revisions', 'sluice revisions --env staging --limit 5'],
};

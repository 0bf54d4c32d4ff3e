import type { EventKind } from '../../contract/events.ts';
import { eventKinds } from '../frame/choices.ts';
import { type Command, inProject, paged, verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import { findProject, takePaged } from '../reach/choose.ts';
import { connect } from '../reach/connect.ts';
import { eventLine } from '../reach/event-line.ts';
import { projectNames } from '../reach/project-names.ts';

export const events: Command = {
  verbs: {
    '': verb({
      about: 'list events, newest last, or follow them as they happen',
      options: {
        ...inProject,
        ...paged,
        type: { type: 'string', value: 'KIND', choices: eventKinds, about: 'only of this kind' },
        follow: { type: 'boolean', short: 'f', about: 'go on until Ctrl-C' },
        after: { type: 'string', value: 'EVENT', about: 'with --follow: begin after this event' },
      },
      async run(context) {
        const sluice = await connect(context);
        const [named, type, after] = [
          context.text('project') ?? context.io.env.SLUICE_PROJECT,
          context.text('type'),
          context.text('after'),
        ];
        const query = {
          ...(named && { project_id: (await findProject(sluice, named)).id }),
          ...(type && { type: type as EventKind }),
        };
        const nameOf = projectNames(sluice);
        if (context.flag('follow')) {
          const options = { signal: context.signal, ...(after && { lastEventId: after }) };
          context.out.note('Following events; Ctrl-C ends it.');
          for await (const event of sluice.events.stream(query, options)) {
            if (context.out.json) context.out.jsonLine(event);
            else context.out.line(eventLine(event, await nameOf(event.project_id), context.out.paint));
          }
          return exit.done;
        }
        const events = await takePaged(context, sluice.events.list(query));
        const names = await Promise.all(events.map(({ project_id }) => nameOf(project_id)));
        context.out.result(events, () => {
          const lines = events.map((event, index) => eventLine(event, names[index]!, context.out.paint));
          for (const line of lines.reverse()) context.out.line(line);
          if (lines.length === 0) context.out.note('Nothing has happened yet.');
        });
        return exit.done;
      },
    }),
  },
  examples: ['sluice events', 'sluice events -f --project shop', 'sluice events --type deployment.failed --json'],
};

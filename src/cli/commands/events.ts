import type { EventKind } from '../../contract/events.ts';
import { eventKinds } from '../frame/choices.ts';
import { type Command, inProject, paged, verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import { findProject, takePaged } from '../reach/choose.ts';
import { connect } from '../reach/connect.ts';
import { eventLine } from '../reach/event-line.ts';
import { projectNames } from '../reach/project-names.ts';

export const command: Command = {
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
      async run(ask) {
        const sluice = await connect(ask);
        const [named, type, after] = [
          ask.text('project') ?? ask.io.env.SLUICE_PROJECT,
          ask.text('type'),
          ask.text('after'),
        ];
        const query = {
          ...(named && { project_id: (await findProject(sluice, named)).id }),
          ...(type && { type: type as EventKind }),
        };
        const nameOf = projectNames(sluice);
        if (ask.flag('follow')) {
          const options = { signal: ask.signal, ...(after && { lastEventId: after }) };
          ask.out.note('Following events; Ctrl-C ends it.');
          for await (const event of sluice.events.stream(query, options)) {
            if (ask.out.json) ask.out.jsonLine(event);
            else ask.out.line(eventLine(event, await nameOf(event.project_id), ask.out.paint));
          }
          return exit.done;
        }
        const events = await takePaged(ask, sluice.events.list(query));
        const names = await Promise.all(events.map(({ project_id }) => nameOf(project_id)));
        ask.out.result(events, () => {
          const lines = events.map((event, index) => eventLine(event, names[index]!, ask.out.paint));
          for (const line of lines.reverse()) ask.out.line(line);
          if (lines.length === 0) ask.out.note('Nothing has happened yet.');
        });
        return exit.done;
      },
    }),
  },
  examples: ['sluice events', 'sluice events -f --project shop', 'sluice events --type deployment.failed --json'],
};

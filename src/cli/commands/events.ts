// sluice events, and the line that stands for an event there and in `sluice webhooks listen`.
import type { Sluice } from '../../client/index.ts';
import type { EventKind } from '../../contract/events.ts';
import { findProject, namedProject, takePaged } from '../choose-target.ts';
import { connect } from '../connect.ts';
import { eventKinds } from '../frame/choices.ts';
import { type Command, inProject, paged, verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import { type Paint, timeOfDay } from '../terminal/output.ts';
import { clean } from '../terminal/table.ts';

/** What events, deliveries and tests have in common. */
export interface EventSummary {
  id: string;
  type: string;
  created_at: string;
  project_id?: string | null;
  data?: unknown;
}

/** The record of an event in short; empty for a kind this version does not know. */
function gist({ type, data }: EventSummary): string {
  const record = (data ?? {}) as Record<string, unknown>;
  const of = (name: string) => clean(String(record[name] ?? '-'));
  if (type.startsWith('deployment.')) {
    const failure = record.failure as { code: string; message: string } | null | undefined;
    return `${of('environment')} ${of('revision')} ${of('image')}${failure ? `: ${failure.code}, ${clean(failure.message)}` : ''}`;
  }
  if (type === 'revision.rolled_back') return `${of('environment')} ${of('id')} ${of('image')}, cause: ${of('cause')}`;
  if (type.startsWith('alert.')) return `${of('environment')} ${of('name')}: ${of('message')}`;
  if (type.startsWith('domain.')) return `${of('hostname')}, leads to ${of('environment')}`;
  return '';
}

export function eventLine(event: EventSummary, project: string, paint: Paint): string {
  const bad = /failed|fired|rolled_back/.test(event.type);
  const kind = paint(bad ? 'red' : /succeeded|resolved|renewed/.test(event.type) ? 'green' : 'cyan', event.type);
  return `${paint('dim', timeOfDay(event.created_at))}  ${kind}  ${paint('bold', clean(project))}  ${gist(event)}`.trimEnd();
}

/** Where the kind of an event begins. */
const indent = 10;

/** Slugs of projects, looked up once each; the id where that is not allowed or the project is gone. */
export function projectNames(sluice: Sluice): (id: string | null | undefined) => Promise<string> {
  const known = new Map<string, Promise<string>>();
  return (id) => {
    if (!id) return Promise.resolve('-');
    const asked =
      known.get(id) ??
      sluice.projects.get(id).then(
        ({ slug }) => slug,
        () => id,
      );
    known.set(id, asked);
    return asked;
  };
}

export const events: Command = {
  verbs: {
    '': verb({
      about: 'list events, newest last, or follow them as they happen',
      options: {
        ...inProject,
        ...paged,
        type: { type: 'string', value: 'KIND', choices: eventKinds, about: 'only of this kind' },
        follow: { type: 'boolean', short: 'f', about: 'follow until Ctrl-C' },
        after: { type: 'string', value: 'EVENT', about: 'with --follow: begin after this event' },
      },
      async run(context) {
        const sluice = await connect(context);
        const [named, type, after] = [namedProject(context), context.text('type'), context.text('after')];
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
            else context.out.line(eventLine(event, await nameOf(event.project_id), context.out.paint), indent);
          }
          return exit.done;
        }
        const events = await takePaged(context, sluice.events.list(query));
        const names = await Promise.all(events.map(({ project_id }) => nameOf(project_id)));
        context.out.result(events, () => {
          const lines = events.map((event, index) => eventLine(event, names[index]!, context.out.paint));
          for (const line of lines.reverse()) context.out.line(line, indent);
          if (lines.length === 0) context.out.note('Nothing has happened yet.');
        });
        return exit.done;
      },
    }),
  },
  examples: ['sluice events', 'sluice events -f --project shop', 'sluice events --type deployment.failed --json'],
};

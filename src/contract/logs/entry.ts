import { Type } from 'typebox';
import { Choice, Nullable, type Of, Shape, Text, Time } from '../declare/shapes.ts';
import { RevisionId } from '../deployments.ts';

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;
export const logStreams = ['stdout', 'stderr', 'system'] as const;

const EntryId = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,64}\\.\\d{1,12}\\.\\d{1,12}$',
  maxLength: 100,
  description: 'Names the entry for as long as it is kept.',
  examples: ['ins_01k9xw3v5qfk2t8m7c4b6d9e0h.3.18204'],
});

export const LogEntry = Shape(
  {
    id: EntryId,
    at: Time('When it was printed.'),
    instance: Text(64, 'Which instance.'),
    revision: RevisionId,
    stream: Choice(logStreams, '`system`: said by the service, such as that lines were lost.'),
    text: Text(20_000, 'The line; with those that continue it, such as a stack trace.'),
    level: Nullable(Choice(logLevels, 'Of a line of JSON or logfmt that names one.')),
    message: Nullable(Text(20_000, 'Of a line of JSON that has one.')),
    logged_at: Nullable(Time('The time that a line of JSON gives itself.')),
  },
  { $id: 'LogEntry' },
);
export type LogEntry = Of<typeof LogEntry>;

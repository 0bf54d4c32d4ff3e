// sluice logs: the latest lines of an environment, or those that follow.
import type { LogEntry, Sluice } from '../../client/index.ts';
import { chooseDeployment, chooseEnvironment } from '../choose-target.ts';
import { type Command, type CommandContext, inEnvironment, verb } from '../frame/command.ts';
import { readTime } from '../frame/parse.ts';
import { CliError, exit } from '../io.ts';
import { timeOfDay } from '../terminal/output.ts';
import { clean } from '../terminal/table.ts';

const most = 1000;
const firstLinesMs = 3000;
const pollMs = 250;

type Query = NonNullable<Parameters<Sluice['logs']['list']>[2]>;
type Filter = Pick<Query, 'since' | 'revision' | 'instance' | 'stream' | 'search'>;

interface LogSource {
  sluice: Sluice;
  project: { id: string; slug: string };
  environment: string;
  /** Of the deployment that is named. */
  revision?: string;
}

/** Of the environment, or of the deployment that is named. */
async function sourceOf(context: CommandContext<'project' | 'env'>): Promise<LogSource> {
  const [named] = context.args;
  if (named === undefined) return chooseEnvironment(context);
  const { sluice, project, deployment } = await chooseDeployment(context, named);
  const { environment, revision } = deployment;
  return { sluice, project, environment, revision };
}

type Context = CommandContext<'since' | 'until' | 'revision' | 'instance' | 'stream' | 'search'>;

function filterOf(context: Context, { revision }: LogSource): Filter {
  const since = context.text('since');
  const filter = {
    since: since === undefined ? undefined : readTime(since, 'since', Date.now()),
    revision: context.text('revision') ?? revision,
    instance: context.text('instance'),
    stream: context.text('stream') as Filter['stream'],
    search: context.text('search'),
  };
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
}

/** The latest entries, oldest first. */
async function readLatest(
  { sluice, project, environment }: LogSource,
  query: Query,
  limit: number,
): Promise<LogEntry[]> {
  const { data } = await sluice.logs.list(project.id, environment, { ...query, limit }).page();
  return data.reverse();
}

/** What an instance prints is stored a moment later: where something has just been started, it is waited for. */
async function readFirst(context: CommandContext, source: LogSource, query: Query, limit: number): Promise<LogEntry[]> {
  const { pause } = await import('../../client/retry.ts');
  const until = Date.now() + firstLinesMs;
  for (;;) {
    const entries = await readLatest(source, query, limit);
    if (entries.length > 0 || query.search !== undefined || Date.now() > until) return entries;
    await requireSomething(source);
    await pause(pollMs, context.signal);
  }
}

async function requireSomething({ sluice, project, environment }: LogSource): Promise<void> {
  const { active_revision, in_progress_deployment } = await sluice.environments.get(project.id, environment);
  if (active_revision !== null || in_progress_deployment !== null) return;
  const message = `Nothing runs in ${environment} of ${project.slug}, and nothing is kept of what did.`;
  throw new CliError(exit.notFound, message, 'Deploy something: sluice deploy IMAGE');
}

const colours = { warn: 'yellow', error: 'red', fatal: 'red' } as const;

function show({ out }: CommandContext, entry: LogEntry): void {
  if (out.json) {
    out.jsonLine(entry);
    return;
  }
  const { at, instance, level, message, text, stream } = entry;
  const head = out.paint('dim', `${timeOfDay(at)} ${instance.slice(-6)}`);
  const shown = level !== null && message !== null ? `${level.toUpperCase().padEnd(5)} ${message}` : text;
  const colour = level === 'warn' || level === 'error' || level === 'fatal' ? colours[level] : null;
  for (const line of shown.split('\n')) {
    const content = clean(line);
    out.line(
      `${head}  ${stream === 'system' ? out.paint('dim', content) : colour ? out.paint(colour, content) : content}`,
    );
  }
}

/** Over restarts and rollouts, until Ctrl-C. */
async function follow(context: CommandContext, source: LogSource, filter: Filter, tail: number): Promise<void> {
  const { signal } = context;
  const { sluice, project, environment } = source;
  context.out.note(`Logs of ${environment} in ${project.slug}; Ctrl-C ends it.`);
  const began = new Date().toISOString();
  const entries = await readLatest(source, filter, tail);
  for (const entry of entries) show(context, entry);
  // From the last one that was shown on: those of its time come again, and are known by their ids.
  const shown = new Set(entries.map(({ id }) => id));
  const since = entries.at(-1)?.at ?? filter.since ?? began;
  for await (const entry of sluice.logs.stream(project.id, environment, { ...filter, since }, { signal })) {
    if (shown.has(entry.id)) continue;
    shown.add(entry.id);
    if (shown.size > 10 * most) shown.delete(shown.values().next().value!);
    show(context, entry);
  }
}

export const logs: Command = {
  verbs: {
    '': verb({
      about: 'show what instances print, also those that are gone (default: of the environment)',
      args: '[DEPLOYMENT]',
      options: {
        ...inEnvironment,
        follow: { type: 'boolean', short: 'f', about: 'follow until Ctrl-C, across restarts and rollouts' },
        tail: { type: 'string', short: 'n', value: 'N', about: 'the latest so many (default: 100, at most 1000)' },
        since: { type: 'string', value: 'TIME', about: 'from then on: 30s, 15m, 1h, 2d ago, or a time' },
        until: { type: 'string', value: 'TIME', about: 'until then, in the same format' },
        search: {
          type: 'string',
          short: 's',
          value: 'TEXT',
          about: 'only entries with this text; lower case ignores case',
        },
        revision: { type: 'string', short: 'r', value: 'R', about: 'of this revision' },
        instance: { type: 'string', short: 'i', value: 'ID', about: 'of this instance' },
        stream: { type: 'string', value: 'S', about: 'of this stream', choices: ['stdout', 'stderr', 'system'] },
      },
      async run(context) {
        const tail = context.whole('tail', 1, most) ?? 100;
        const source = await sourceOf(context);
        const filter = filterOf(context, source);
        if (context.flag('follow')) {
          await follow(context, source, filter, tail);
          return exit.done;
        }
        const until = context.text('until');
        const query = until === undefined ? filter : { ...filter, until: readTime(until, 'until', Date.now()) };
        const entries = await readFirst(context, source, query, tail);
        context.out.result(entries, () => {
          for (const entry of entries) show(context, entry);
          if (entries.length === 0) context.out.note('No such lines are kept.');
        });
        return exit.done;
      },
    }),
  },
  examples: [
    'sluice logs',
    'sluice logs -f --env staging',
    'sluice logs --since 1h --search timeout -r r12',
    'sluice logs r12 --tail 20',
  ],
};

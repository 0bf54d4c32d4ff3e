import type { Sluice } from '../../client/index.ts';
import { type Command, type CommandContext, inEnvironment, verb } from '../frame/command.ts';
import { CliError, exit } from '../io.ts';
import { chooseEnvironment, chooseProject, type ProjectTarget } from '../reach/choose.ts';
import { timeOfDay } from '../terminal/quantities.ts';
import { clean } from '../terminal/width.ts';

type Line = Awaited<ReturnType<Sluice['deployments']['logs']>>['data'][number];

const lookMs = 1000;
const most = 1000;

/** The deployment whose logs are shown; following calls it again and again, because it changes. */
type Which = () => Promise<string>;

/** The one that is named, else the one in progress, else the one whose revision serves. */
async function whichOf(context: CommandContext<'project' | 'env'>): Promise<ProjectTarget & { which: Which }> {
  const [named] = context.args;
  if (named !== undefined) return { ...(await chooseProject(context)), which: async () => named };
  const { sluice, project, environment } = await chooseEnvironment(context);
  let serving = { revision: '', deployment: '' };
  const which = async () => {
    const { in_progress_deployment: running, active_revision: active } = await sluice.environments.get(
      project.id,
      environment,
    );
    if (running !== null) return running;
    if (active === null)
      throw new CliError(
        exit.notFound,
        `Nothing runs in ${environment} of ${project.slug}.`,
        'Deploy something: sluice deploy IMAGE',
      );
    if (serving.revision !== active) {
      const { deployment_id } = await sluice.revisions.get(project.id, environment, active);
      serving = { revision: active, deployment: deployment_id };
    }
    return serving.deployment;
  };
  return { sluice, project, which };
}

/** Finds the lines that are new. Several lines can have the same time, so those of the latest time are remembered. */
export class LogTail {
  #since: string | undefined;
  #seen = new Set<string>();

  get since(): string | undefined {
    // The service returns lines later than this. One millisecond less includes those of the latest time again.
    return this.#since && new Date(Date.parse(this.#since) - 1).toISOString();
  }

  fresh(lines: Line[]): Line[] {
    const keyOf = ({ at, instance, stream, text }: Line) => `${at} ${instance} ${stream} ${text}`;
    const found = lines.filter((line) => !this.#seen.has(keyOf(line)));
    const last = lines.reduce((latest, { at }) => (at > latest ? at : latest), this.#since ?? '');
    if (last !== '') {
      this.#since = last;
      this.#seen = new Set(lines.filter(({ at }) => at === last).map(keyOf));
    }
    return found;
  }
}

function show({ out }: CommandContext, line: Line): void {
  if (out.json) {
    out.jsonLine(line);
    return;
  }
  const short = line.instance.slice(-6);
  const text = clean(line.text);
  out.line(
    `${out.paint('dim', `${timeOfDay(line.at)} ${short}`)}  ${line.stream === 'stderr' ? out.paint('red', text) : text}`,
  );
}

/** Switches to the next deployment when one begins. */
async function follow(
  context: CommandContext,
  { sluice, project, which }: ProjectTarget & { which: Which },
  tail: number,
): Promise<void> {
  const { signal } = context;
  const { pause } = await import('../../client/pause.ts');
  let shown = '';
  let seen = new LogTail();
  while (!signal.aborted) {
    try {
      const id = await which();
      if (id !== shown) {
        context.out.note(`Logs of ${id}; Ctrl-C ends it.`);
        shown = id;
        seen = new LogTail();
      }
      const { since } = seen;
      const query = since === undefined ? { tail } : { tail: most, since };
      const { data } = await sluice.deployments.logs(project.id, id, query, { signal });
      for (const line of seen.fresh(data)) show(context, line);
      await pause(lookMs, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

export const command: Command = {
  verbs: {
    '': verb({
      about: 'show what instances print (default: of the deployment in progress, else of the one that serves)',
      args: '[DEPLOYMENT]',
      options: {
        ...inEnvironment,
        follow: { type: 'boolean', short: 'f', about: 'go on until Ctrl-C' },
        tail: { type: 'string', short: 'n', value: 'N', about: 'begin with so many lines (default: 100)' },
      },
      async run(context) {
        const tail = context.whole('tail', 1, most) ?? 100;
        const here = await whichOf(context);
        if (context.flag('follow')) {
          await follow(context, here, tail);
          return exit.done;
        }
        const id = await here.which();
        const { data, truncated } = await here.sluice.deployments.logs(here.project.id, id, { tail });
        context.out.result(data, () => {
          if (truncated) context.out.note('These are the latest; more would be too large to show at once.');
          for (const line of data) show(context, line);
          if (data.length === 0) context.out.note(`${id} has printed nothing.`);
        });
        return exit.done;
      },
    }),
  },
  examples: ['sluice logs', 'sluice logs -f --env staging', 'sluice logs dpl_01k9xw3v5qfk2t8m7c4b6d9e0h --tail 20'],
};

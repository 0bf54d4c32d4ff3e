// sluice webhooks listen: a receiver on a free loopback port, registered for as long as it runs, that shows every event
// and whether its signature is right. Where the service may not send to this machine, the event stream is followed
// instead.
import type { Sluice } from '../../client/index.ts';
import type { EventKind } from '../../contract/events.ts';
import type { Webhook } from '../../contract/webhooks.ts';
import { eventKinds } from '../frame/choices.ts';
import { type CommandContext, verb } from '../frame/command.ts';
import { CliError, exit, UsageError } from '../io.ts';
import { findProject } from '../reach/choose.ts';
import { connect } from '../reach/connect.ts';
import { type EventSummary, eventLine } from '../reach/event-line.ts';
import { projectNames } from '../reach/project-names.ts';
import { type Arrival, openReceiver } from '../reach/receiver.ts';

interface ListenOptions {
  context: CommandContext;
  sluice: Sluice;
  projectId: string | null;
  events: EventKind[];
  forward: string | undefined;
}

const description = 'sluice webhooks listen';

/** null: the service does not send to this machine. */
async function register(
  { sluice, projectId, events }: ListenOptions,
  url: string,
): Promise<(Webhook & { secret: string }) | null> {
  const wanted = events.length > 0 ? events : ['*' as const];
  try {
    return await sluice.webhooks.create({
      url,
      events: wanted,
      description,
      ...(projectId && { project_id: projectId }),
    });
  } catch (error) {
    if ((error as { code?: string }).code === 'webhook_url_not_allowed') return null;
    throw error;
  }
}

function show(options: ListenOptions, nameOf: (id: string | null | undefined) => Promise<string>) {
  const { out } = options.context;
  return async (event: EventSummary, verified: boolean | null, answer: string | null): Promise<void> => {
    if (out.json) return out.jsonLine({ verified, answer, event });
    const word = verified ? out.paint('green', 'verified') : out.paint('red', 'WRONG SIGNATURE');
    const marks = [...(verified === null ? [] : [word]), ...(answer === null ? [] : [`→ ${answer}`])].join(' ');
    out.line(`${eventLine(event, await nameOf(event.project_id), out.paint)}  ${marks}`.trimEnd());
  };
}

async function receive(options: ListenOptions): Promise<boolean> {
  const { context, sluice, forward } = options;
  const showEvent = show(options, projectNames(sluice));
  const shown: Promise<void>[] = [];
  const onArrival = ({ event, verified, answer }: Arrival) => void shown.push(showEvent(event, verified, answer));
  const receiver = await openReceiver({ forward, onArrival });
  let webhook: Awaited<ReturnType<typeof register>> = null;
  try {
    const ended = new Promise((resolve) => context.signal.addEventListener('abort', resolve));
    webhook = await register(options, receiver.url);
    if (webhook === null) return false;
    receiver.secret(webhook.secret);
    context.out.note(`Listening at ${receiver.url} as ${webhook.id}; Ctrl-C ends it and removes the webhook.`);
    if (forward) context.out.note(`Forwarding to ${forward}; deliveries are signed with ${webhook.secret}`);
    if (!context.signal.aborted) await ended;
    return true;
  } finally {
    if (webhook !== null) await sluice.webhooks.delete(webhook.id);
    await receiver.close();
    await Promise.all(shown);
  }
}

async function followInstead(options: ListenOptions): Promise<void> {
  const { context, sluice, projectId, events, forward } = options;
  if (forward)
    throw new CliError(
      exit.failed,
      'The service does not send webhooks to this machine, so there is nothing signed to forward.',
      'Have its operator open the range: SLUICE_WEBHOOK_ALLOW_CIDRS',
    );
  context.out.note(
    'The service does not send webhooks to this machine; following the event stream instead (no signatures).',
  );
  const showEvent = show(options, projectNames(sluice));
  for await (const event of sluice.events.stream(projectId ? { project_id: projectId } : {}, {
    signal: context.signal,
  })) {
    if (events.length === 0 || events.includes(event.type)) await showEvent(event, null, null);
  }
}

export const listenVerb = verb({
  about: 'receive events here, show them and check their signatures',
  options: {
    project: {
      type: 'string',
      short: 'p',
      value: 'P',
      about: 'only events of this project (default: SLUICE_PROJECT, or all)',
    },
    events: {
      type: 'string',
      multiple: true,
      value: 'KIND',
      choices: eventKinds,
      about: 'only of this kind; as often as needed',
    },
    forward: { type: 'string', value: 'URL', about: 'hand each delivery on, and its answer back' },
  },
  async run(context) {
    const forward = context.text('forward');
    if (forward !== undefined && !/^https?:$/.test(URL.parse(forward)?.protocol ?? ''))
      throw new UsageError('--forward takes an address that begins with http:// or https://');
    const sluice = await connect(context);
    const named = context.text('project') ?? (context.io.env.SLUICE_PROJECT || undefined);
    const projectId = named ? (await findProject(sluice, named)).id : null;
    const options: ListenOptions = {
      context,
      sluice,
      projectId,
      events: context.texts('events') as EventKind[],
      forward,
    };
    if (!(await receive(options))) await followInstead(options);
    return exit.done;
  },
});

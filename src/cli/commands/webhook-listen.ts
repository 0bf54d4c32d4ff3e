// sluice webhooks listen: a receiver on a free loopback port, registered for as long as it runs, that shows every event
// and whether its signature is right. Where the service may not send to this machine, the event stream is followed
// instead.
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Sluice } from '../../client/index.ts';
import { verifySignature } from '../../client/signature.ts';
import type { EventKind } from '../../contract/events.ts';
import type { Webhook } from '../../contract/webhooks.ts';
import { findProject, namedProject } from '../choose-target.ts';
import { connect } from '../connect.ts';
import { eventKinds } from '../frame/choices.ts';
import { type CommandContext, verb } from '../frame/command.ts';
import { CliError, exit, UsageError } from '../io.ts';
import { type EventSummary, eventLine, projectNames } from './events.ts';

interface Arrival {
  event: EventSummary;
  verified: boolean;
  /** The response of the address it was forwarded to; null: it was not forwarded. */
  answer: string | null;
}

interface ReceiverOptions {
  forward: string | undefined;
  onArrival(arrival: Arrival): void;
}

interface Receiver {
  url: string;
  /** Known only once the webhook is registered, which is after the receiver listens. */
  secret(secret: string): void;
  close(): Promise<void>;
}

const mostBytes = 2 * 1024 * 1024;
const forwardTimeoutMs = 14_000;

/** The header's name is a setting of the service; the one of Standard Webhooks is computed differently. */
function signatureOf(headers: IncomingHttpHeaders): string | undefined {
  const names = Object.keys(headers).filter((name) => name.endsWith('-signature') && name !== 'webhook-signature');
  return headers[names[0] ?? ''] as string | undefined;
}

async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > mostBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function eventOf(body: Buffer): EventSummary | null {
  try {
    const event = JSON.parse(body.toString('utf8'));
    return typeof event?.id === 'string' && typeof event.type === 'string' && typeof event.created_at === 'string'
      ? event
      : null;
  } catch {
    return null;
  }
}

async function handOn(
  url: string,
  headers: IncomingHttpHeaders,
  body: Buffer,
): Promise<{ status: number; text: string }> {
  const own = new Set(['host', 'connection', 'content-length', 'transfer-encoding']);
  const passed = Object.entries(headers).filter(([name, value]) => !own.has(name) && typeof value === 'string');
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: Object.fromEntries(passed) as Record<string, string>,
      body: new Uint8Array(body),
      redirect: 'manual',
      signal: AbortSignal.timeout(forwardTimeoutMs),
    });
    await response.body?.cancel();
    return { status: response.status, text: String(response.status) };
  } catch (error) {
    const cause = (error as Error).cause as Error | undefined;
    return { status: 502, text: cause?.message || (error as Error).message };
  }
}

/** Checks the signature of each delivery, and forwards those that are genuine where `forward` is set. */
async function openReceiver({ forward, onArrival }: ReceiverOptions): Promise<Receiver> {
  const { promise: known, resolve: secret } = Promise.withResolvers<string>();
  const handle = async (request: IncomingMessage): Promise<number> => {
    const body = request.method === 'POST' ? await readBody(request) : null;
    const event = body && eventOf(body);
    if (!body || !event) return 400;
    const verified = await verifySignature(body, signatureOf(request.headers), await known);
    const answer = forward && verified ? await handOn(forward, request.headers, body) : null;
    onArrival({ event, verified, answer: answer?.text ?? null });
    return verified ? (answer?.status ?? 200) : 401;
  };
  const server = createServer((request, response) => {
    handle(request).then(
      (status) => response.writeHead(status).end(),
      () => response.destroy(),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    secret,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

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

function printer(options: ListenOptions, nameOf: (id: string | null | undefined) => Promise<string>) {
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
  const showEvent = printer(options, projectNames(sluice));
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
  const showEvent = printer(options, projectNames(sluice));
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
      about: 'only this kind; may be repeated',
    },
    forward: { type: 'string', value: 'URL', about: 'forward each delivery there, and return the answer' },
  },
  async run(context) {
    const forward = context.text('forward');
    if (forward !== undefined && !/^https?:$/.test(URL.parse(forward)?.protocol ?? ''))
      throw new UsageError('--forward takes an address that begins with http:// or https://');
    const sluice = await connect(context);
    const named = namedProject(context);
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

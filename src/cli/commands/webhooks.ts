// sluice webhooks …: endpoints, what was sent to them, and sending it again. The local receiver is webhook-listen.ts.
import type { DeliveryState } from '../../contract/deliveries.ts';
import type { Webhook } from '../../contract/webhooks.ts';
import { findProject, takePaged } from '../choose-target.ts';
import { connect } from '../connect.ts';
import { deliveryStates, eventKinds, orderings } from '../frame/choices.ts';
import { type Command, type CommandContext, paged, verb } from '../frame/command.ts';
import { readTime } from '../frame/parse.ts';
import { exit, UsageError } from '../io.ts';
import { colourOf, plural } from '../terminal/output.ts';
import { clean } from '../terminal/table.ts';
import { listenVerb } from './webhook-listen.ts';

const testVerb = verb({
  about: 'send a test',
  args: 'ID',
  async run(context) {
    const sluice = await connect(context);
    const delivery = await sluice.webhooks.test(context.args[0]!);
    context.out.result(delivery, () => {
      context.out.line(`${delivery.id} is on its way`);
      context.out.note(`How it went: sluice webhooks delivery ${context.args[0]} ${delivery.id}`);
    });
    return exit.done;
  },
});

const deliveriesVerb = verb({
  about: 'list deliveries of a webhook',
  args: 'ID',
  options: { ...paged, state: { type: 'string', value: 'S', choices: deliveryStates, about: 'only in this state' } },
  async run(context) {
    const sluice = await connect(context);
    const state = context.text('state') as DeliveryState | undefined;
    const list = sluice.deliveries.list(context.args[0]!, state ? { state } : {});
    context.out.list(
      await takePaged(context, list),
      [
        { title: 'ID', of: ({ id }) => id, whole: true },
        { title: 'STATE', of: (delivery) => delivery.state, colour: (delivery) => colourOf(delivery.state) },
        { title: 'EVENT', of: ({ event_type }) => event_type },
        { title: 'TRIES', of: ({ attempt_count }) => attempt_count, right: true, optional: 3 },
        { title: 'NEXT', of: ({ next_attempt_at }) => context.out.time(next_attempt_at), optional: 1 },
        { title: 'CREATED', of: ({ created_at }) => context.out.time(created_at), optional: 2 },
      ],
      'There is no such delivery. Send a test: sluice webhooks test ID',
    );
    return exit.done;
  },
});

const deliveryVerb = verb({
  about: 'show every attempt of a delivery',
  args: 'ID DELIVERY',
  async run(context) {
    const { out } = context;
    const sluice = await connect(context);
    const delivery = await sluice.deliveries.get(context.args[0]!, context.args[1]!);
    out.result(delivery, () => {
      out.line(`${delivery.id}  ${out.paint(colourOf(delivery.state), delivery.state)}  ${delivery.event_type}`);
      for (const { number, at, duration_ms, status, error, answer } of delivery.attempts) {
        out.line(`  ${number}. ${at}  ${status ?? clean(error ?? 'no answer')}  ${duration_ms} ms`);
        if (answer) out.line(`     ${clean(answer).slice(0, 500)}`);
      }
      if (delivery.next_attempt_at) out.line(`  next: ${delivery.next_attempt_at}`);
    });
    return exit.done;
  },
});

const redeliverVerb = verb({
  about: 'send a delivery again, now',
  args: 'ID DELIVERY',
  async run(context) {
    const sluice = await connect(context);
    const delivery = await sluice.deliveries.redeliver(context.args[0]!, context.args[1]!);
    context.out.result(delivery, () => context.out.line(`${delivery.id} is on its way`));
    return exit.done;
  },
});

const replayVerb = verb({
  about: 'resend what did not arrive since a time',
  args: 'ID',
  options: {
    since: { type: 'string', value: 'TIME', about: 'such as 2026-11-15T00:00:00Z, or 6h, 30m, 2d before now' },
    missing: { type: 'boolean', about: 'also events that never had a delivery' },
  },
  async run(context) {
    const text = context.text('since');
    if (text === undefined) throw new UsageError('--since is missing.');
    const since = readTime(text, 'since', context.io.now());
    const sluice = await connect(context);
    const only = context.flag('missing') ? ('missing' as const) : ('failed' as const);
    let replayed = { scheduled: 0, has_more: true };
    while (replayed.has_more) {
      const { scheduled, has_more } = await sluice.webhooks.replay(context.args[0]!, { since, only });
      replayed = { scheduled: replayed.scheduled + scheduled, has_more };
    }
    context.out.result(replayed, () => {
      context.out.line(`${plural(replayed.scheduled, 'delivery', 'deliveries')} on the way`);
    });
    return exit.done;
  },
});

function showWebhook({ out }: CommandContext, webhook: Webhook): number {
  out.result(webhook, () =>
    out.line(`${webhook.id}  ${out.paint(colourOf(webhook.state), webhook.state)}  ${webhook.url}`),
  );
  return exit.done;
}

/** The secret alone on standard output, so that it can be piped to where it is kept. */
function showSecret({ out }: CommandContext, webhook: Webhook & { secret: string }): number {
  out.result(webhook, () => {
    out.note(`${webhook.id} sends ${webhook.events.join(', ')} to ${webhook.url}. Its secret, shown this once:`);
    out.line(webhook.secret);
  });
  return exit.done;
}

const turn = (state: 'enabled' | 'paused', about: string) =>
  verb({
    about,
    args: 'ID',
    async run(context) {
      const sluice = await connect(context);
      return showWebhook(context, await sluice.webhooks.update(context.args[0]!, { state }));
    },
  });

export const webhooks: Command = {
  verbs: {
    list: verb({
      about: 'list webhooks',
      options: paged,
      async run(context) {
        const sluice = await connect(context);
        context.out.list(
          await takePaged(context, sluice.webhooks.list()),
          [
            { title: 'ID', of: ({ id }) => id, whole: true },
            { title: 'STATE', of: ({ state }) => state, colour: ({ state }) => colourOf(state) },
            { title: 'URL', of: ({ url }) => url, whole: true },
            { title: 'EVENTS', of: ({ events }) => events.join(' '), optional: 1 },
            { title: 'FAILING SINCE', of: ({ failing_since }) => context.out.time(failing_since), optional: 2 },
          ],
          'There is no webhook. Try one here: sluice webhooks listen',
        );
        return exit.done;
      },
    }),
    create: verb({
      about: 'register a webhook; its secret is shown only once',
      args: 'URL',
      options: {
        events: {
          type: 'string',
          multiple: true,
          value: 'KIND',
          choices: [...eventKinds, '*'],
          about: 'which events it gets (default: all)',
        },
        project: { type: 'string', short: 'p', value: 'P', about: 'only events of this project (default: of all)' },
        description: { type: 'string', value: 'TEXT', about: 'for people' },
        ordering: { type: 'string', value: 'O', choices: orderings, about: 'strict: one at a time, in sequence' },
      },
      async run(context) {
        const sluice = await connect(context);
        const [project, description, ordering] = [
          context.text('project'),
          context.text('description'),
          context.text('ordering'),
        ];
        const events = context.texts('events') as Webhook['events'];
        const made = await sluice.webhooks.create({
          url: context.args[0]!,
          events: events.length > 0 ? events : ['*'],
          ...(project && { project_id: (await findProject(sluice, project)).id }),
          ...(description && { description }),
          ...(ordering && { ordering: ordering as Webhook['ordering'] }),
        });
        return showSecret(context, made);
      },
    }),
    listen: listenVerb,
    test: testVerb,
    deliveries: deliveriesVerb,
    delivery: deliveryVerb,
    redeliver: redeliverVerb,
    replay: replayVerb,
    rotate: verb({
      about: 'replace the secret; during the overlap deliveries are signed with both',
      args: 'ID',
      options: { overlap: { type: 'string', value: 'S', about: 'seconds the old one stays valid (default: a day)' } },
      async run(context) {
        const sluice = await connect(context);
        const overlap = context.whole('overlap', 0, 604_800);
        return showSecret(
          context,
          await sluice.webhooks.rotateSecret(context.args[0]!, overlap === undefined ? {} : { overlap_s: overlap }),
        );
      },
    }),
    pause: turn('paused', 'hold deliveries'),
    enable: turn('enabled', 'send deliveries again, and reset past failures'),
    delete: verb({
      about: 'delete a webhook and its deliveries',
      args: 'ID',
      async run(context) {
        const sluice = await connect(context);
        await sluice.webhooks.delete(context.args[0]!);
        context.out.result({ id: context.args[0], deleted: true }, () =>
          context.out.line(`${context.args[0]} is deleted`),
        );
        return exit.done;
      },
    }),
  },
  fallback: 'list',
  examples: [
    'sluice webhooks listen --forward http://127.0.0.1:3000/hook',
    'sluice webhooks create https://hooks.example/sluice --events deployment.failed',
    'sluice webhooks deliveries whk_01k9xw3v5qfk2t8m7c4b6d9e0h --state failed',
    'sluice webhooks replay whk_01k9xw3v5qfk2t8m7c4b6d9e0h --since 2026-11-15T00:00:00Z',
  ],
};

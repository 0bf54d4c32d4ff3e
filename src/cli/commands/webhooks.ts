// sluice webhooks …: endpoints. What was sent to them is webhook-deliveries.ts, the local receiver webhook-listen.ts.
import type { Webhook } from '../../contract/webhooks.ts';
import { eventKinds, orderings } from '../frame/choices.ts';
import type { Command, CommandContext } from '../frame/command.ts';
import { paged, verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import { findProject, takePaged } from '../reach/choose.ts';
import { connect } from '../reach/connect.ts';
import { colourOf } from '../terminal/output.ts';
import { deliveriesVerb, deliveryVerb, redeliverVerb, replayVerb, testVerb } from './webhook-deliveries.ts';
import { listenVerb } from './webhook-listen.ts';

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
            { title: 'ID', of: ({ id }) => id },
            { title: 'STATE', of: ({ state }) => state, colour: ({ state }) => colourOf(state) },
            { title: 'URL', of: ({ url }) => url },
            { title: 'EVENTS', of: ({ events }) => events.join(' ') },
            { title: 'FAILING SINCE', of: ({ failing_since }) => context.out.time(failing_since) },
          ],
          'There is no webhook. Try one here: sluice webhooks listen',
        );
        return exit.done;
      },
    }),
    create: verb({
      about: 'register a webhook; its secret is shown this once',
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
      about: 'replace the secret; for a while deliveries are signed with both',
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
    pause: turn('paused', 'let deliveries wait'),
    enable: turn('enabled', 'send them again, and forget past failures'),
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

// What was sent to a webhook, and sending it again.
import type { DeliveryState } from '../../contract/deliveries.ts';
import { deliveryStates } from '../frame/choices.ts';
import { paged, verb } from '../frame/command.ts';
import { readTime } from '../frame/time-option.ts';
import { exit, UsageError } from '../io.ts';
import { takePaged } from '../reach/choose.ts';
import { connect } from '../reach/connect.ts';
import { colourOf } from '../terminal/output.ts';
import { plural } from '../terminal/quantities.ts';
import { clean } from '../terminal/width.ts';

export const testVerb = verb({
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

export const deliveriesVerb = verb({
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
        { title: 'ID', of: ({ id }) => id },
        { title: 'STATE', of: (delivery) => delivery.state, colour: (delivery) => colourOf(delivery.state) },
        { title: 'EVENT', of: ({ event_type }) => event_type },
        { title: 'TRIES', of: ({ attempt_count }) => attempt_count, right: true },
        { title: 'NEXT', of: ({ next_attempt_at }) => context.out.time(next_attempt_at) },
        { title: 'CREATED', of: ({ created_at }) => context.out.time(created_at) },
      ],
      'There is no such delivery. Send a test: sluice webhooks test ID',
    );
    return exit.done;
  },
});

export const deliveryVerb = verb({
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

export const redeliverVerb = verb({
  about: 'send a delivery again, now',
  args: 'ID DELIVERY',
  async run(context) {
    const sluice = await connect(context);
    const delivery = await sluice.deliveries.redeliver(context.args[0]!, context.args[1]!);
    context.out.result(delivery, () => context.out.line(`${delivery.id} is on its way`));
    return exit.done;
  },
});

export const replayVerb = verb({
  about: 'send again what did not arrive since a time',
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
    const replayed = await sluice.webhooks.replay(context.args[0]!, { since, only });
    context.out.result(replayed, () => {
      context.out.line(`${plural(replayed.scheduled, 'delivery', 'deliveries')} on the way`);
      if (replayed.has_more) context.out.note('There are more: ask again.');
    });
    return exit.done;
  },
});

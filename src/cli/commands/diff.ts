// sluice diff, and how a difference between two revisions is written.
import type { PendingChange } from '../../contract/environments.ts';
import { chooseEnvironment, revisionPattern } from '../choose-target.ts';
import { type Command, inEnvironment, verb } from '../frame/command.ts';
import { exit, UsageError } from '../io.ts';
import { clean, pairs } from '../terminal/table.ts';

const signs = { added: '+', changed: '~', removed: '−' } as const;

/** The tag of an image, which is what differs from one deployment to the next; the whole reference where there is none. */
export const tagOf = (image: string | null): string =>
  image === null ? '-' : clean(/:([\w.-]+)$/.exec(image)?.[1] ?? image);

/** The values of variables are never shown, so that one of them changed is all there is to say. */
const isVariable = ({ field }: PendingChange): boolean => field.startsWith('variables.');

/** In one line of several: `− CHECKOUT_V2`, `port 80 → 8080`. */
export function changeText(change: PendingChange): string {
  if (isVariable(change)) return `variables: ${signs[change.change]} ${clean(change.field.slice('variables.'.length))}`;
  return `${clean(change.field)} ${valuesOf(change)}`;
}

const valuesOf = ({ from, to }: PendingChange): string => `${clean(from ?? 'none')} → ${clean(to ?? 'none')}`;

export const diff: Command = {
  verbs: {
    '': verb({
      about: 'show what differs between two revisions: image, settings, names of variables (default: the one before)',
      args: 'REVISION [REVISION]',
      options: inEnvironment,
      async run(context) {
        for (const word of context.args)
          if (!revisionPattern.test(word)) throw new UsageError(`${word} is not a revision such as r7.`);
        const [first, second] = context.args as [string, string?];
        const { sluice, project, environment } = await chooseEnvironment(context);
        const compared = await sluice.revisions.compare(
          project.id,
          environment,
          second ?? first,
          second === undefined ? {} : { from: first },
        );
        const { out } = context;
        out.result(compared, () => {
          const { from, to, changes } = compared;
          out.note(`${from ?? 'nothing'} → ${to} of ${project.slug} · ${environment}`);
          if (changes.length === 0) out.note('They do not differ.');
          const lines = pairs(
            changes.map((change) => [
              `${signs[change.change]} ${clean(change.field)}`,
              isVariable(change) ? '' : valuesOf(change),
            ]),
          );
          for (const [index, line] of lines.entries())
            out.line(
              out.paint(({ added: 'green', changed: 'yellow', removed: 'red' } as const)[changes[index]!.change], line),
            );
        });
        return exit.done;
      },
    }),
  },
  notes: 'Values of variables are never shown: only which of them were added, changed or removed.',
  examples: ['sluice diff r12 r14', 'sluice diff r14 --env staging'],
};

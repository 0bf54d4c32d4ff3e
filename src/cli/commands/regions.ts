import type { Region } from '../../client/types.ts';
import { type Command, verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import { take } from '../reach/choose.ts';
import { connect } from '../reach/connect.ts';

const mostShown = 1000;

/** How many of its machines answer, and which do not. */
function hostsOf({ hosts }: Region): string {
  if (!hosts) return '-';
  const away = hosts.filter(({ available }) => !available).map(({ name }) => name);
  const count = `${hosts.length - away.length} of ${hosts.length}`;
  return away.length === 0 ? count : `${count}, away: ${away.join(' ')}`;
}

export const regions: Command = {
  verbs: {
    '': verb({
      about: 'list regions, and whether the engine of each answers',
      async run(context) {
        const sluice = await connect(context);
        context.out.list(
          await take(sluice.regions.list(), mostShown),
          [
            { title: 'NAME', of: ({ name }) => name },
            { title: 'ENGINE', of: ({ engine }) => engine },
            {
              title: 'STATE',
              of: ({ available }) => (available ? 'answers' : 'away'),
              colour: ({ available }) => (available ? 'green' : 'red'),
            },
            { title: 'HOSTS', of: hostsOf },
          ],
          'There is no region.',
        );
        return exit.done;
      },
    }),
  },
  notes: 'HOSTS: of a region with several Docker hosts, how many answer.',
  examples: ['sluice regions'],
};

import type { Instance } from '../../contract/running/instances.ts';
import { type Command, inEnvironment, paged, verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import { chooseEnvironment, takePaged } from '../reach/choose.ts';
import { healthLine } from '../terminal/health.ts';
import { type Colour, colourOf } from '../terminal/output.ts';

const ownColours: Partial<Record<Instance['state'], Colour>> = {
  unhealthy: 'red',
  ended: 'red',
  draining: 'dim',
};

function stateOf({ state, ended }: Instance): string {
  if (!ended) return state;
  const code = ended.exit_code === null ? '' : `, exit code ${ended.exit_code}`;
  return `${state}: ${ended.reason}${code}`;
}

function checkOf({ last_check: check }: Instance): string {
  if (!check) return '-';
  return check.ok ? `ok: ${check.message}` : `failed: ${check.message}`;
}

export const ps: Command = {
  verbs: {
    '': verb({
      about: 'list instances of an environment: those that run, and those that ended by themselves',
      options: { ...inEnvironment, ...paged },
      async run(context) {
        const { sluice, project, environment } = await chooseEnvironment(context);
        const [{ health }, instances] = await Promise.all([
          sluice.environments.get(project.id, environment),
          takePaged(context, sluice.instances.list(project.id, environment)),
        ]);
        const wrong = healthLine(`${environment} of ${project.slug}`, health, context.out);
        if (wrong !== null && !context.out.json) context.out.line(`${wrong}\n`);
        context.out.list(
          instances,
          [
            { title: 'INSTANCE', of: ({ id }) => id },
            { title: 'REV', of: ({ revision }) => revision },
            { title: 'STATE', of: stateOf, colour: ({ state }) => ownColours[state] ?? colourOf(state) },
            { title: 'RESTARTS', of: ({ restarts }) => restarts, right: true },
            { title: 'STARTED', of: ({ started_at }) => context.out.time(started_at) },
            { title: 'ENDED', of: ({ ended }) => context.out.time(ended?.at ?? null) },
            { title: 'NODE', of: ({ node }) => node },
            { title: 'LAST CHECK', of: checkOf },
          ],
          `Nothing runs in ${environment} of ${project.slug}. Deploy something: sluice deploy IMAGE`,
        );
        return exit.done;
      },
    }),
  },
  examples: ['sluice ps', 'sluice ps --env staging'],
};

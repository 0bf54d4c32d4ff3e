// promote, pause, resume and abort: one command each, which differ only in the operation of the API they call.
import { type Command, inEnvironment, verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import { chooseDeployment } from '../reach/choose.ts';
import { watch } from '../reach/watch.ts';

type Step = 'promote' | 'pause' | 'resume' | 'abort';

function rolloutCommand(step: Step, about: string): Command {
  return {
    verbs: {
      '': verb({
        about: `${about} (default: the deployment in progress)`,
        args: '[DEPLOYMENT]',
        options: {
          ...inEnvironment,
          wait: { type: 'boolean', short: 'w', about: 'watch it to its end; exit code 0 only if it succeeded' },
        },
        async run(context) {
          const { sluice, project, deployment } = await chooseDeployment(context, context.args[0]);
          const after = await sluice.deployments[step](project.id, deployment.id);
          if (context.flag('wait')) return watch(context, sluice, after);
          const share = after.canary ? `, ${after.canary.phase} at ${after.canary.percent} %` : '';
          context.out.result(after, () => context.out.line(`${after.id}  ${after.revision} is ${after.state}${share}`));
          return exit.done;
        },
      }),
    },
    examples: [`sluice ${step}`, `sluice ${step} dpl_01k9xw3v5qfk2t8m7c4b6d9e0h --project shop`],
  };
}

export const promote = rolloutCommand('promote', 'go on with a canary: to its next step, or to all traffic');
export const pause = rolloutCommand('pause', 'hold a canary at its share');
export const resume = rolloutCommand('resume', 'go on with a paused canary; its step begins anew');
export const abort = rolloutCommand('abort', 'end a deployment; the previous revision serves all traffic');

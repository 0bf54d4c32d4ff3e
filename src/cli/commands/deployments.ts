// sluice deployments and sluice revisions: what was rolled out, and what can be rolled back to.
import type { DeploymentState } from '../../contract/deployments.ts';
import { chooseDeployment, chooseEnvironment, chooseProject, takePaged } from '../choose-target.ts';
import { deploymentStates } from '../frame/choices.ts';
import { type Command, inEnvironment, paged, verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import { colourOf } from '../terminal/output.ts';
import { clean, pairs } from '../terminal/table.ts';
import { brief, timelineIndent, timelineLine } from './rollout-story.ts';
import { watch } from './watch-deployment.ts';

export const deployments: Command = {
  verbs: {
    list: verb({
      about: 'list deployments',
      options: {
        ...inEnvironment,
        ...paged,
        state: { type: 'string', value: 'S', choices: deploymentStates, about: 'only in this state' },
      },
      async run(context) {
        const { sluice, project } = await chooseProject(context);
        const state = context.text('state') as DeploymentState | undefined;
        const environment = context.text('env');
        const query = { ...(environment && { environment }), ...(state && { state }) };
        const found = await takePaged(context, sluice.deployments.list(project.id, query));
        context.out.list(
          found,
          [
            { title: 'ID', of: ({ id }) => id, whole: true },
            { title: 'STATE', of: ({ state }) => state, colour: ({ state }) => colourOf(state) },
            { title: 'ENV', of: ({ environment }) => environment, optional: 1 },
            { title: 'REV', of: ({ revision }) => revision },
            { title: 'IMAGE', of: ({ image }) => image, whole: true },
            { title: 'CREATED', of: ({ created_at }) => context.out.time(created_at), optional: 2 },
          ],
          `${project.slug} has no such deployment. Create one: sluice deploy IMAGE`,
        );
        return exit.done;
      },
    }),
    show: verb({
      about: 'show a deployment with its timeline (default: the latest)',
      args: '[DEPLOYMENT]',
      options: inEnvironment,
      async run(context) {
        const { deployment: d } = await chooseDeployment(context, context.args[0], true);
        const { out } = context;
        out.result(d, () => {
          const lines = pairs(
            [
              ['id', d.id],
              ['state', out.paint(colourOf(d.state), d.state)],
              ['environment', d.environment],
              ['revision', d.previous_revision === null ? d.revision : `${d.previous_revision} → ${d.revision}`],
              ['image', clean(d.image)],
              [
                d.local ? 'image id' : 'digest',
                d.digest === null ? '-' : d.local ? `${d.digest} (local, not pulled)` : d.digest,
              ],
              ['strategy', d.strategy + (d.canary_percent === null ? '' : `, ${d.canary_percent} % first`)],
              ['created', d.created_at],
              ['finished', d.finished_at ?? '-'],
              ...(d.note ? [['note', clean(d.note)] as [string, string]] : []),
              ...(d.failure ? [['failure', `${d.failure.code}: ${clean(d.failure.message)}`] as [string, string]] : []),
            ],
            out.columns,
          );
          for (const line of [...lines, '']) out.line(line);
          for (const { message, ...entry } of d.timeline)
            out.line(timelineLine({ ...entry, message: brief(message) }, out.paint), timelineIndent);
        });
        return exit.done;
      },
    }),
    watch: verb({
      about: 'watch a deployment to its end (default: the latest)',
      args: '[DEPLOYMENT]',
      options: inEnvironment,
      async run(context) {
        const { sluice, deployment } = await chooseDeployment(context, context.args[0], true);
        return watch(context, sluice, deployment);
      },
    }),
  },
  fallback: 'list',
  examples: ['sluice deployments', 'sluice deployments show r19', 'sluice deployments watch'],
};

export const revisions: Command = {
  verbs: {
    '': verb({
      about: 'list revisions of an environment, and which of them can be rolled back to',
      options: { ...inEnvironment, ...paged },
      async run(context) {
        const { sluice, project, environment } = await chooseEnvironment(context);
        context.out.list(
          await takePaged(context, sluice.revisions.list(project.id, environment)),
          [
            { title: 'REV', of: ({ id }) => id },
            { title: 'STATE', of: ({ state }) => state, colour: ({ state }) => colourOf(state) },
            { title: 'TRAFFIC', of: (r) => (r.traffic_percent > 0 ? `${r.traffic_percent} %` : '-'), right: true },
            { title: 'ROLLBACK', of: (r) => (r.rollback_eligible ? 'yes' : (r.ineligible_reason ?? 'no')) },
            { title: 'IMAGE', of: ({ image }) => image, whole: true },
            { title: 'CREATED', of: ({ created_at }) => context.out.time(created_at), optional: 2 },
          ],
          `${environment} of ${project.slug} has no revision yet. Deploy one: sluice deploy IMAGE`,
        );
        return exit.done;
      },
    }),
  },
  examples: ['sluice revisions', 'sluice revisions --env staging --limit 5'],
};

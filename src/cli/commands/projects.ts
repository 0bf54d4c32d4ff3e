import { chooseProject, findProject, takePaged } from '../choose-target.ts';
import { connect } from '../connect.ts';
import { type Command, inProject, paged, verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import { confirmFirst } from '../terminal/prompt.ts';
import { clean, pairs } from '../terminal/table.ts';

export const projects: Command = {
  verbs: {
    list: verb({
      about: 'list projects',
      options: paged,
      async run(context) {
        const sluice = await connect(context);
        context.out.list(
          await takePaged(context, sluice.projects.list()),
          [
            { title: 'SLUG', of: ({ slug }) => slug },
            { title: 'NAME', of: ({ name }) => name },
            { title: 'ENVIRONMENTS', of: ({ environments }) => environments.join(', '), optional: 1 },
            { title: 'CREATED', of: ({ created_at }) => context.out.time(created_at), optional: 2 },
            { title: 'ID', of: ({ id }) => id, whole: true },
          ],
          'There is no project yet. Create one: sluice projects create "My shop"',
        );
        return exit.done;
      },
    }),
    create: verb({
      about: 'create a project, with the environment production',
      args: 'NAME',
      options: {
        slug: { type: 'string', value: 'SLUG', about: 'part of its addresses (default: made from the name)' },
        description: { type: 'string', value: 'TEXT', about: 'for people' },
        region: { type: 'string', value: 'R', about: 'where production runs' },
      },
      async run(context) {
        const sluice = await connect(context);
        const [slug, description, region] = [context.text('slug'), context.text('description'), context.text('region')];
        const name = context.args[0]!;
        const body = { name, ...(slug && { slug }), ...(description && { description }), ...(region && { region }) };
        const project = await sluice.projects.create(body);
        context.out.result(project, () => {
          context.out.line(`${project.id}  ${project.slug}`);
          context.out.note(`Deploy to it: sluice deploy IMAGE --project ${project.slug}`);
        });
        return exit.done;
      },
    }),
    show: verb({
      about: 'show a project (default: the one of --project, or the only one)',
      args: '[PROJECT]',
      options: inProject,
      async run(context) {
        const [named] = context.args;
        const project = named
          ? await findProject(await connect(context), named)
          : (await chooseProject(context)).project;
        context.out.result(project, () => {
          const lines = pairs(
            [
              ['id', project.id],
              ['name', clean(project.name)],
              ['slug', project.slug],
              ['description', clean(project.description ?? '-')],
              ['labels', clean(project.labels.join(', ') || '-')],
              ['environments', project.environments.join(', ')],
              ['created', project.created_at],
              ['updated', project.updated_at],
            ],
            context.out.columns,
          );
          for (const line of lines) context.out.line(line);
        });
        return exit.done;
      },
    }),
    delete: verb({
      about: 'delete a project and everything that belongs to it',
      args: 'PROJECT',
      options: { yes: { type: 'boolean', short: 'y', about: 'do not ask' } },
      async run(context) {
        const sluice = await connect(context);
        const project = await findProject(sluice, context.args[0]!);
        await confirmFirst(
          context,
          `Delete ${project.slug} with ${project.environments.join(', ')} and all that runs there?`,
        );
        await sluice.projects.delete(project.id);
        context.out.result({ id: project.id, deleted: true }, () => context.out.line(`${project.slug} is deleted`));
        return exit.done;
      },
    }),
  },
  fallback: 'list',
  examples: ['sluice projects', 'sluice projects create "My shop" --slug shop', 'sluice projects delete shop'],
};

import { askFirst } from '../frame/ask-first.ts';
import { type Command, inProject, paged, verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import { chooseProject, findProject, takePaged } from '../reach/choose.ts';
import { connect } from '../reach/connect.ts';
import { pairs } from '../terminal/table.ts';
import { clean } from '../terminal/width.ts';

export const command: Command = {
  verbs: {
    list: verb({
      about: 'list projects',
      options: paged,
      async run(ask) {
        const sluice = await connect(ask);
        ask.out.list(
          await takePaged(ask, sluice.projects.list()),
          [
            { title: 'SLUG', of: ({ slug }) => slug },
            { title: 'NAME', of: ({ name }) => name },
            { title: 'ENVIRONMENTS', of: ({ environments }) => environments.join(', ') },
            { title: 'CREATED', of: ({ created_at }) => ask.out.time(created_at) },
            { title: 'ID', of: ({ id }) => id },
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
      async run(ask) {
        const sluice = await connect(ask);
        const [slug, description, region] = [ask.text('slug'), ask.text('description'), ask.text('region')];
        const name = ask.args[0]!;
        const body = { name, ...(slug && { slug }), ...(description && { description }), ...(region && { region }) };
        const project = await sluice.projects.create(body);
        ask.out.result(project, () => {
          ask.out.line(`${project.id}  ${project.slug}`);
          ask.out.note(`Deploy to it: sluice deploy IMAGE --project ${project.slug} --wait`);
        });
        return exit.done;
      },
    }),
    show: verb({
      about: 'show a project (default: the one of --project, or the only one)',
      args: '[PROJECT]',
      options: inProject,
      async run(ask) {
        const [named] = ask.args;
        const project = named ? await findProject(await connect(ask), named) : (await chooseProject(ask)).project;
        ask.out.result(project, () => {
          const lines = pairs([
            ['id', project.id],
            ['name', clean(project.name)],
            ['slug', project.slug],
            ['description', clean(project.description ?? '-')],
            ['labels', clean(project.labels.join(', ') || '-')],
            ['environments', project.environments.join(', ')],
            ['created', project.created_at],
            ['updated', project.updated_at],
          ]);
          for (const line of lines) ask.out.line(line);
        });
        return exit.done;
      },
    }),
    delete: verb({
      about: 'delete a project and everything that belongs to it',
      args: 'PROJECT',
      options: { yes: { type: 'boolean', short: 'y', about: 'do not ask' } },
      async run(ask) {
        const sluice = await connect(ask);
        const project = await findProject(sluice, ask.args[0]!);
        await askFirst(ask, `Delete ${project.slug} with ${project.environments.join(', ')} and all that runs there?`);
        await sluice.projects.delete(project.id);
        ask.out.result({ id: project.id, deleted: true }, () => ask.out.line(`${project.slug} is deleted`));
        return exit.done;
      },
    }),
  },
  fallback: 'list',
  examples: ['sluice projects', 'sluice projects create "My shop" --slug shop', 'sluice projects delete shop'],
};

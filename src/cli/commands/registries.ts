import { findProject, takePaged } from '../choose-target.ts';
import { connect } from '../connect.ts';
import { type Command, paged, verb } from '../frame/command.ts';
import { CliError, exit, UsageError } from '../io.ts';
import { prompt, readStdin } from '../terminal/prompt.ts';

export const registries: Command = {
  verbs: {
    list: verb({
      about: 'list registry logins, never their passwords',
      options: paged,
      async run(context) {
        const sluice = await connect(context);
        context.out.list(
          await takePaged(context, sluice.registries.list()),
          [
            { title: 'ID', of: ({ id }) => id, whole: true },
            { title: 'HOST', of: ({ host }) => host },
            { title: 'USER', of: ({ username }) => username },
            { title: 'PROJECTS', of: ({ project_ids }) => project_ids?.join(' ') ?? 'all', optional: 1 },
          ],
          'There is no login. Add one: sluice registries add ghcr.io --user NAME',
        );
        return exit.done;
      },
    }),
    add: verb({
      about: 'add a login for pulling images of your account',
      args: 'HOST',
      options: {
        user: { type: 'string', value: 'NAME', about: 'the user to log in as' },
        'password-stdin': { type: 'boolean', about: 'read the password from standard input' },
        project: { type: 'string', short: 'p', multiple: true, value: 'P', about: 'only for these projects' },
      },
      async run(context) {
        const { io } = context;
        const username = context.text('user');
        if (username === undefined) throw new UsageError('Whose login is it? Pass --user NAME.');
        const fromStdin = context.flag('password-stdin');
        if (!fromStdin && !io.stdin.isTTY)
          throw new UsageError('Not a terminal: pass the password with --password-stdin.');
        const sluice = await connect(context);
        const host = context.args[0]!;
        const asked = `Password of ${username} at ${host} (not shown): `;
        const password = (fromStdin ? await readStdin(io) : await prompt(io, asked, true)).replace(/\r?\n$/, '');
        if (password === '') throw new CliError(exit.usage, 'The password is empty.');
        const projects = await Promise.all(context.texts('project').map((named) => findProject(sluice, named)));
        const made = await sluice.registries.create({
          host,
          username,
          password,
          ...(projects.length > 0 && { project_ids: projects.map(({ id }) => id) }),
        });
        context.out.result(made, () => context.out.line(`${made.id}  ${made.username} at ${made.host}`));
        return exit.done;
      },
    }),
    remove: verb({
      about: 'remove a login',
      args: 'ID',
      async run(context) {
        const sluice = await connect(context);
        await sluice.registries.delete(context.args[0]!);
        context.out.result({ id: context.args[0], deleted: true }, () =>
          context.out.line(`${context.args[0]} is removed`),
        );
        return exit.done;
      },
    }),
  },
  fallback: 'list',
  notes: 'The password is never an argument, so it stays out of your shell history.',
  examples: ['sluice registries add ghcr.io --user ann --password-stdin < token'],
};

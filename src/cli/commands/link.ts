// sluice link: the project and environment that a folder is about. sluice open: their pages.
import { spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { chooseEnvironment, environmentOf, findProject } from '../choose-target.ts';
import { connect } from '../connect.ts';
import { type Command, inEnvironment, verb } from '../frame/command.ts';
import { CliError, exit, type Io, UsageError } from '../io.ts';
import { findLink, linkFile } from '../link.ts';

export const link: Command = {
  verbs: {
    '': verb({
      about: 'let this folder, and those below it, mean a project; without a name, show which it means',
      args: '[PROJECT]',
      options: {
        env: { type: 'string', short: 'e', value: 'E', about: 'the environment, too' },
        remove: { type: 'boolean', about: 'forget it' },
      },
      async run(context) {
        const { io, out } = context;
        const [named] = context.args;
        if (named === undefined) {
          const found = findLink(io);
          if (found === null)
            throw new CliError(exit.notFound, 'No folder here is linked.', 'Link it: sluice link PROJECT');
          if (context.flag('remove')) rmSync(found.path);
          out.result({ ...found, removed: context.flag('remove') }, () =>
            out.line(
              context.flag('remove')
                ? `${found.path} is removed`
                : `${where(found)}  (${relative(io.cwd, found.path)})`,
            ),
          );
          return exit.done;
        }
        if (context.flag('remove')) throw new UsageError('--remove goes without a project.');
        const project = await findProject(await connect(context), named);
        const env = context.text('env');
        const environment = env === undefined ? null : environmentOf(project, env);
        const path = join(io.cwd, linkFile);
        const content = { project: project.slug, ...(environment !== null && { environment }) };
        writeFileSync(path, `${JSON.stringify(content)}\n`);
        out.result({ project: project.slug, environment, path, removed: false }, () => {
          out.line(`This folder is ${where({ project: project.slug, environment })}`);
          out.note(`Kept in ${linkFile}, which names no service and holds no token. Now: sluice deploy IMAGE`);
        });
        return exit.done;
      },
    }),
  },
  notes: `The name is kept in ${linkFile}, which you can commit. --project, --env and SLUICE_PROJECT come before it.`,
  examples: ['sluice link shop', 'sluice link shop --env staging', 'sluice link --remove'],
};

const where = ({ project, environment }: { project: string; environment: string | null }): string =>
  environment === null ? project : `${project} · ${environment}`;

export const open: Command = {
  verbs: {
    '': verb({
      about: 'open the environment in a browser, or its page in the console; without a browser, print the address',
      options: { ...inEnvironment, console: { type: 'boolean', short: 'c', about: 'its page in the console' } },
      async run(context) {
        const { sluice, project, environment } = await chooseEnvironment(context);
        const address = context.flag('console')
          ? `${context.found!.url}/console/projects/${project.id}/environments/${environment}`
          : (await sluice.environments.get(project.id, environment)).url;
        context.out.result({ url: address }, () => context.out.line(address));
        if (context.io.stdout.isTTY && !context.out.json) await openInBrowser(context.io, address);
        return exit.done;
      },
    }),
  },
  notes: 'The browser is $BROWSER, else that of the desktop. Away from a terminal, the address is only printed.',
  examples: ['sluice open', 'sluice open --console --env staging'],
};

/** Where there is none, the address that was printed has to do. */
function openInBrowser({ env }: Io, address: string): Promise<void> {
  const program = env.BROWSER || (process.platform === 'darwin' ? 'open' : 'xdg-open');
  return new Promise((resolve) => {
    const child = spawn(program, [address], { stdio: 'ignore', detached: true });
    child.on('error', () => resolve());
    child.on('spawn', () => {
      child.unref();
      resolve();
    });
  });
}

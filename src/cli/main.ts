// sluice COMMAND: each command is a file of its own, loaded only when it is asked for.
import { StartError } from '../lib/start-error.ts';
import { UsageError } from './io.ts';

interface Command {
  run(args: string[]): Promise<number>;
}

const commands: Record<string, { about: string; load(): Promise<Command> }> = {
  serve: { about: 'run the service', load: () => import('./serve.ts') },
  account: { about: 'make and list accounts', load: () => import('./account.ts') },
  token: { about: 'make a token without having one', load: () => import('./token.ts') },
  catalogue: { about: 'build, verify, serve and push the media catalogue', load: () => import('./catalogue.ts') },
};

const overview = `usage: sluice COMMAND …

${Object.entries(commands)
  .map(([name, { about }]) => `  ${name.padEnd(12)}${about}`)
  .join('\n')}

Settings come from the environment; see docs/settings.md. Exit codes: 0 done, 1 failed, 2 wrong use, 78 wrong settings.`;

export async function main(args: string[]): Promise<number> {
  const [name = '--help', ...rest] = args;
  if (name === '--help' || name === '-h' || name === 'help') {
    console.log(overview);
    return 0;
  }
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (!command) {
    console.error(`sluice: there is no command ${name}\n\n${overview}`);
    return 2;
  }
  try {
    return await (await command.load()).run(rest);
  } catch (error) {
    return explain(error);
  }
}

function explain(error: unknown): number {
  if (error instanceof StartError) {
    for (const line of error.lines) console.error(`sluice: ${line}`);
    return 78;
  }
  const { code, message } = error as NodeJS.ErrnoException;
  if (error instanceof UsageError || code?.startsWith('ERR_PARSE_ARGS')) {
    console.error(message);
    return 2;
  }
  throw error;
}

process.exitCode = await main(process.argv.slice(2));

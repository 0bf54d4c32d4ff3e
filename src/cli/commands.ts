// Every command, loaded only when it runs. Their descriptions are in overview.txt; a test compares the two with each other
// and with docs/cli.md.
import type { Command } from './frame/command.ts';

type Load = () => Promise<Command>;

const rolloutCommands = () => import('./commands/rollout-commands.ts');

export const commands: Record<string, Load> = {
  deploy: async () => (await import('./commands/deploy.ts')).command,
  redeploy: async () => (await import('./commands/redeploy.ts')).command,
  status: async () => (await import('./commands/status.ts')).command,
  ps: async () => (await import('./commands/ps.ts')).command,
  deployments: async () => (await import('./commands/deployments.ts')).command,
  promote: async () => (await rolloutCommands()).promote,
  pause: async () => (await rolloutCommands()).pause,
  resume: async () => (await rolloutCommands()).resume,
  abort: async () => (await rolloutCommands()).abort,
  rollback: async () => (await import('./commands/rollback.ts')).command,
  revisions: async () => (await import('./commands/revisions.ts')).command,
  logs: async () => (await import('./commands/logs.ts')).command,
  projects: async () => (await import('./commands/projects.ts')).command,
  environments: async () => (await import('./commands/environments.ts')).command,
  domains: async () => (await import('./commands/domains.ts')).command,
  alerts: async () => (await import('./commands/alerts.ts')).command,
  webhooks: async () => (await import('./commands/webhooks.ts')).command,
  events: async () => (await import('./commands/events.ts')).command,
  regions: async () => (await import('./commands/regions.ts')).command,
  registries: async () => (await import('./commands/registries.ts')).command,
  tokens: async () => (await import('./commands/tokens.ts')).command,
  login: async () => (await import('./commands/login.ts')).command,
  logout: async () => (await import('./commands/logout.ts')).command,
  serve: async () => (await import('./commands/serve.ts')).command,
  reload: async () => (await import('./commands/reload.ts')).command,
  doctor: async () => (await import('./commands/doctor.ts')).command,
  account: async () => (await import('./commands/account.ts')).command,
  token: async () => (await import('./commands/token.ts')).command,
  migrate: async () => (await import('./commands/migrate.ts')).command,
  database: async () => (await import('./commands/database.ts')).command,
  catalogue: async () => (await import('./commands/catalogue.ts')).command,
  completion: async () => (await import('./commands/completion.ts')).completionOf(findCommand),
};

const aliases: Record<string, string> = { env: 'environments' };

export const names: readonly string[] = Object.keys(commands);

/** The name of a command, also of one that was called by its short name. */
export function resolveName(name: string): string | undefined {
  const real = Object.hasOwn(aliases, name) ? aliases[name]! : name;
  return Object.hasOwn(commands, real) ? real : undefined;
}

function findCommand(name: string): Promise<Command> | undefined {
  const real = resolveName(name);
  return real === undefined ? undefined : commands[real]!();
}

// Every command, loaded only when it runs. Their descriptions are in overview.txt; a test compares the two with each
// other and with docs/cli.md.
import type { Command } from './frame/command.ts';

type Load = () => Promise<Command>;

const rolloutCommands = () => import('./commands/rollouts.ts');
const databaseCommands = () => import('./commands/database.ts');

export const commands: Record<string, Load> = {
  deploy: async () => (await rolloutCommands()).deploy,
  redeploy: async () => (await rolloutCommands()).redeploy,
  rollback: async () => (await rolloutCommands()).rollback,
  status: async () => (await import('./commands/status.ts')).status,
  ps: async () => (await import('./commands/status.ts')).ps,
  deployments: async () => (await import('./commands/deployments.ts')).deployments,
  promote: async () => (await rolloutCommands()).promote,
  pause: async () => (await rolloutCommands()).pause,
  resume: async () => (await rolloutCommands()).resume,
  abort: async () => (await rolloutCommands()).abort,
  revisions: async () => (await import('./commands/deployments.ts')).revisions,
  diff: async () => (await import('./commands/diff.ts')).diff,
  logs: async () => (await import('./commands/logs.ts')).logs,
  metrics: async () => (await import('./commands/metrics.ts')).metrics,
  open: async () => (await import('./commands/link.ts')).open,
  link: async () => (await import('./commands/link.ts')).link,
  projects: async () => (await import('./commands/projects.ts')).projects,
  environments: async () => (await import('./commands/environments.ts')).environments,
  domains: async () => (await import('./commands/domains.ts')).domains,
  alerts: async () => (await import('./commands/alerts.ts')).alerts,
  webhooks: async () => (await import('./commands/webhooks.ts')).webhooks,
  events: async () => (await import('./commands/events.ts')).events,
  audit: async () => (await import('./commands/metrics.ts')).audit,
  regions: async () => (await import('./commands/status.ts')).regions,
  registries: async () => (await import('./commands/registries.ts')).registries,
  tokens: async () => (await import('./commands/tokens.ts')).tokens,
  login: async () => (await import('./commands/login.ts')).login,
  logout: async () => (await import('./commands/login.ts')).logout,
  serve: async () => (await import('./commands/serve.ts')).serve,
  reload: async () => (await import('./commands/serve.ts')).reload,
  doctor: async () => (await import('./commands/doctor.ts')).doctor,
  backup: async () => (await import('./commands/backup.ts')).backup,
  restore: async () => (await import('./commands/backup.ts')).restore,
  upgrade: async () => (await import('./commands/backup.ts')).upgrade,
  account: async () => (await databaseCommands()).account,
  token: async () => (await databaseCommands()).token,
  migrate: async () => (await databaseCommands()).migrate,
  database: async () => (await databaseCommands()).database,
  catalogue: async () => (await import('./commands/catalogue.ts')).catalogue,
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

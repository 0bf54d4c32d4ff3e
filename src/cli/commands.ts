// Every command, loaded only when it is asked for. What each is for stands in overview.txt; a test holds the two against
// each other and against docs/cli.md.
import type { Command } from './frame/command.ts';

type Load = () => Promise<Command>;

const steer = () => import('./steer.ts');

export const commands: Record<string, Load> = {
  deploy: async () => (await import('./deploy.ts')).command,
  status: async () => (await import('./status.ts')).command,
  deployments: async () => (await import('./deployments.ts')).command,
  promote: async () => (await steer()).promote,
  pause: async () => (await steer()).pause,
  resume: async () => (await steer()).resume,
  abort: async () => (await steer()).abort,
  rollback: async () => (await import('./rollback.ts')).command,
  revisions: async () => (await import('./revisions.ts')).command,
  logs: async () => (await import('./logs.ts')).command,
  projects: async () => (await import('./projects.ts')).command,
  environments: async () => (await import('./environments.ts')).command,
  domains: async () => (await import('./domains.ts')).command,
  alerts: async () => (await import('./alerts.ts')).command,
  webhooks: async () => (await import('./webhooks.ts')).command,
  events: async () => (await import('./events.ts')).command,
  tokens: async () => (await import('./tokens.ts')).command,
  login: async () => (await import('./login.ts')).command,
  logout: async () => (await import('./logout.ts')).command,
  serve: async () => (await import('./serve.ts')).command,
  doctor: async () => (await import('./doctor.ts')).command,
  account: async () => (await import('./account.ts')).command,
  token: async () => (await import('./token.ts')).command,
  database: async () => (await import('./database.ts')).command,
  catalogue: async () => (await import('./catalogue.ts')).command,
  completion: async () => (await import('./completion.ts')).command,
};

const aliases: Record<string, string> = { env: 'environments' };

export const names: readonly string[] = Object.keys(commands);

/** The name of a command, also of one that was called by its short name. */
export function resolveName(name: string): string | undefined {
  const real = Object.hasOwn(aliases, name) ? aliases[name]! : name;
  return Object.hasOwn(commands, real) ? real : undefined;
}

// The service a command talks to. Address and token come from the first source that has both: the environment, what
// `sluice login` stored, the data directory of a service on this machine. A token is only ever sent to an address from
// the place that it comes from: a folder that another person made, with a `data/address` in it, gets no token of yours.
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { Sluice } from '../client/index.ts';
import type { CommandContext, FoundService } from './frame/command.ts';
import { CliError, exit, type Io } from './io.ts';

export const defaultUrl = 'http://127.0.0.1:8080';

interface Source {
  url: string | null;
  token: string | null;
  name: string;
}

/** The address without `/v1` and slashes at its end. */
export function normalUrl(text: string, name: string): string {
  const url = URL.parse(text);
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw new CliError(exit.settings, `${name} must be an address that begins with http:// or https://`);
  if (url.username || url.password) throw new CliError(exit.settings, `${name} must not hold a user or password.`);
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '').replace(/\/v1$/, '');
}

function fromEnvironment(env: Io['env']): Source {
  const url = env.SLUICE_API_URL ? normalUrl(env.SLUICE_API_URL, 'SLUICE_API_URL') : null;
  const names = [...(url ? ['SLUICE_API_URL'] : []), ...(env.SLUICE_TOKEN ? ['SLUICE_TOKEN'] : [])];
  const token = env.SLUICE_TOKEN?.trim() || null;
  if (token !== null && !/^[!-~]+$/.test(token))
    throw new CliError(exit.settings, 'SLUICE_TOKEN must be one line without spaces.');
  return { url, token, name: names.join(' and ') };
}

function fromLogin(env: Io['env']): Source {
  const login = readLogin(env);
  return { url: login?.url ?? null, token: login?.token ?? null, name: `the login in ${loginPath(env)}` };
}

function readLine(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim() || null;
  } catch {
    return null;
  }
}

/**
 * A running service writes its address there; without one, the token belongs to the default address. An admin token in the
 * environment goes with a data directory that the environment names, not with one that happens to be here.
 */
export function fromDataDirectory({ env, cwd }: Pick<Io, 'env' | 'cwd'>): Source {
  const dir = resolve(cwd, env.SLUICE_DATA_DIR || 'data');
  const token = (env.SLUICE_DATA_DIR && env.SLUICE_ADMIN_TOKEN) || readLine(join(dir, 'admin-token'));
  const address = readLine(join(dir, 'address'));
  return { url: address ?? (token ? defaultUrl : null), token, name: `the data directory ${dir}` };
}

export function findService(io: Pick<Io, 'env' | 'cwd'>): FoundService {
  const environment = fromEnvironment(io.env);
  const stored = [fromLogin(io.env), fromDataDirectory(io)];
  if (environment.url !== null && environment.token !== null)
    return { url: environment.url, token: environment.token, from: environment.name };
  if (environment.url !== null) {
    const fitting = stored.find((source) => source.url === environment.url && source.token !== null);
    if (fitting) return { url: environment.url, token: fitting.token!, from: `SLUICE_API_URL and ${fitting.name}` };
    throw new CliError(
      exit.notAllowed,
      `There is no token for ${environment.url}, which SLUICE_API_URL names.`,
      `Set SLUICE_TOKEN, or log in: sluice login ${environment.url}`,
    );
  }
  if (environment.token !== null) throw tokenAlone(stored);
  const source = stored.find(({ url, token }) => url !== null && token !== null);
  if (source) return { url: source.url!, token: source.token!, from: source.name };
  throw new CliError(
    exit.notAllowed,
    'No service is known.',
    'Log in with a token: sluice login http://127.0.0.1:8080',
    'or set SLUICE_API_URL and SLUICE_TOKEN, or start one here: sluice serve',
    ...(io.env.SLUICE_ADMIN_TOKEN ? ['SLUICE_ADMIN_TOKEN is used together with SLUICE_DATA_DIR only.'] : []),
  );
}

function tokenAlone(stored: Source[]): CliError {
  const source = stored.find(({ url }) => url !== null);
  const elsewhere = source ? `${source.url}, which comes from ${source.name}` : `the default address ${defaultUrl}`;
  return new CliError(
    exit.settings,
    `SLUICE_TOKEN is set and SLUICE_API_URL is not, so the token is not sent: not to ${elsewhere}.`,
    `Set SLUICE_API_URL to the service that the token is for, for example: SLUICE_API_URL=${source?.url ?? defaultUrl}`,
    'or unset SLUICE_TOKEN.',
  );
}

/** The client is loaded only by commands that call a service. */
export async function connect(context: CommandContext): Promise<Sluice> {
  const found = findService(context.io);
  context.found = found;
  return clientFor(found);
}

export async function clientFor({ url, token }: Pick<FoundService, 'url' | 'token'>): Promise<Sluice> {
  const { createClient } = await import('../client/index.ts');
  return createClient({ url, token });
}

/** What `sluice login` stores: one address and its token, in a file that only its owner can read. */
interface Login {
  url: string;
  token: string;
}

export function loginPath(env: Io['env']): string {
  return join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config'), 'sluice', 'login.json');
}

function readLogin(env: Io['env']): Login | null {
  const path = loginPath(env);
  try {
    const { url, token } = JSON.parse(readFileSync(path, 'utf8')) as Partial<Login>;
    if (typeof url === 'string' && typeof token === 'string') return { url, token };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    if (code !== undefined) throw new CliError(exit.failed, `${path} cannot be read: ${code}`);
  }
  throw new CliError(exit.failed, `${path} is not what sluice login writes.`, 'Log in again: sluice login');
}

/** Whole or not at all, and never readable by others, not even for a moment. */
export function writeLogin(env: Io['env'], login: Login): string {
  const path = loginPath(env);
  const aside = `${path}.${process.pid}`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(aside, `${JSON.stringify(login)}\n`, { mode: 0o600, flag: 'w', flush: true });
    chmodSync(aside, 0o600);
    renameSync(aside, path);
  } catch (error) {
    rmSync(aside, { force: true });
    throw new CliError(exit.failed, `${path} cannot be written: ${(error as Error).message}`);
  }
  return path;
}

/** False: there was none. */
export function removeLogin(env: Io['env']): boolean {
  try {
    rmSync(loginPath(env));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

// What `sluice login` remembers: one address and its token, in a file that only its owner can read.
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { CliError, exit, type Io } from '../io.ts';

interface Login {
  url: string;
  token: string;
}

export function loginPath(env: Io['env']): string {
  return join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config'), 'sluice', 'login.json');
}

export function readLogin(env: Io['env']): Login | null {
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
  const fresh = `${path}.${process.pid}`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(fresh, `${JSON.stringify(login)}\n`, { mode: 0o600, flag: 'w', flush: true });
    chmodSync(fresh, 0o600);
    renameSync(fresh, path);
  } catch (error) {
    rmSync(fresh, { force: true });
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

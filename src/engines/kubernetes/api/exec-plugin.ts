// Credentials from a program (client.authentication.k8s.io), as the clouds' kubeconfig files have them. Run only where the
// operator allows it. The program gets its arguments as they are, without a shell.
import { execFile } from 'node:child_process';
import { homedir } from 'node:os';
import { isAbsolute, resolve } from 'node:path';
import { promisify } from 'node:util';
import { AccessError, type TokenSource } from './access.ts';

export interface ExecPlugin {
  apiVersion?: unknown;
  command?: unknown;
  args?: unknown;
  env?: unknown;
}

const timeoutMs = 30_000;
const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** Before it expires, so that no request is under way with it then. */
const renewBeforeMs = 60_000;

export function execToken(plugin: ExecPlugin, folder: string, now: () => number = Date.now): TokenSource {
  const { apiVersion = 'client.authentication.k8s.io/v1', command, args = [], env = [] } = plugin;
  if (typeof command !== 'string' || command === '') throw new AccessError('the kubeconfig names no program to run');
  // As kubectl does: a path is seen from the folder of the kubeconfig, a bare name is looked for.
  const program = command.includes('/') && !isAbsolute(command) ? resolve(folder, command) : command;
  const own = Object.fromEntries((env as { name: string; value: string }[]).map(({ name, value }) => [name, value]));
  const info = JSON.stringify({ apiVersion, kind: 'ExecCredential', spec: { interactive: false } });
  let known: { token: string; until: number } | null = null;
  return async (anew) => {
    if (known && !anew && now() < known.until) return known.token;
    const { stdout } = await promisify(execFile)(program, (args as unknown[]).map(String), {
      // Not all that this service was started with: its own secrets are none of the program's business.
      env: { PATH: searchPath, HOME: homedir(), ...own, KUBERNETES_EXEC_INFO: info },
      timeout: timeoutMs,
      maxBuffer: 1024 * 1024,
    }).catch((error: Error & { code?: unknown }) => {
      // Not its output: that may be the secret.
      throw new AccessError(`${program}, which gives the credentials of the cluster, failed (${error.code})`);
    });
    known = readCredential(stdout, program);
    return known.token;
  };
}

function readCredential(text: string, program: string): { token: string; until: number } {
  try {
    const { status } = JSON.parse(text) as { status?: { token?: unknown; expirationTimestamp?: unknown } };
    const expires = Date.parse(String(status?.expirationTimestamp ?? ''));
    const until = Number.isNaN(expires) ? Number.POSITIVE_INFINITY : expires - renewBeforeMs;
    if (typeof status?.token === 'string' && status.token !== '') return { token: status.token, until };
  } catch {}
  throw new AccessError(`${program} gave no token; client certificates from a program are not supported`);
}

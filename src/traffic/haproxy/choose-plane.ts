// Which data plane `SLUICE_DATA_PLANE` means on this machine, and why. The supervisor decides once, before it opens ports.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export interface ChosenPlane {
  /** The program of HAProxy; null: the built-in proxy. */
  haproxy: string | null;
  /** For the start-up lines. */
  line: string;
}

interface Situation {
  setting: 'auto' | 'builtin' | 'haproxy';
  /** What the setting names. */
  haproxy: string | null;
  /** HAProxy opens its ports itself, so they have to be fixed. */
  hasFixedPorts: boolean;
  /** systemd holds the router's ports. */
  hasReceivedPorts: boolean;
  /** Folders, as in PATH. */
  searchPath: string;
}

export function choosePlane(situation: Situation): ChosenPlane {
  const { setting, haproxy } = situation;
  if (setting === 'haproxy') return { haproxy, line: `the router is HAProxy: SLUICE_DATA_PLANE names ${haproxy}` };
  if (setting === 'builtin') return builtIn('SLUICE_DATA_PLANE says so');
  if (!situation.hasFixedPorts) return builtIn('HAProxy needs ports other than 0');
  if (situation.hasReceivedPorts) return builtIn('systemd holds its ports, and HAProxy opens its own');
  const program = findHaproxy(situation.searchPath);
  if (program === null) return builtIn('HAProxy is not installed');
  const { stdout } = spawnSync(program, ['-vv'], { encoding: 'utf8', timeout: 5000 });
  const { version, lacks } = judgeHaproxy(stdout ?? '');
  if (lacks !== null) return builtIn(`${program} ${lacks}`);
  return { haproxy: program, line: `the router is HAProxy ${version}: ${program} is installed` };
}

const builtIn = (why: string): ChosenPlane => ({ haproxy: null, line: `the router is the built-in one: ${why}` });

function findHaproxy(searchPath: string): string | null {
  const folders = searchPath.split(delimiter).filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, 'haproxy')).find((path) => existsSync(path)) ?? null;
}

/** From what `haproxy -vv` prints: its version, and what our configuration needs and it has not. */
export function judgeHaproxy(printed: string): { version: string; lacks: string | null } {
  const [, version = '', major = '0', minor = '0'] = /^HAProxy version ((\d+)\.(\d+)\S*)/m.exec(printed) ?? [];
  const isNewEnough = Number(major) > 2 || (Number(major) === 2 && Number(minor) >= 6);
  if (version === '') return { version, lacks: 'does not tell its version' };
  if (!isNewEnough) return { version, lacks: `is ${version}, and 2.6 is needed` };
  const missing = [
    [/ \+OPENSSL/, 'OpenSSL'],
    [/ \+PCRE2?[ _\n]/, 'PCRE'],
  ] as const;
  const lacking = missing.find(([feature]) => !feature.test(printed));
  return { version, lacks: lacking ? `is built without ${lacking[1]}` : null };
}
